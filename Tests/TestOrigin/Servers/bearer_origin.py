# SPDX-License-Identifier: Apache-2.0
"""An origin that challenges for a bearer token and answers as RFC 6750 §3 describes.

Usage: bearer_origin.py CONTROL LOG [CERT KEY]    Prints `listening PORT`; http without CERT. CONTROL is a JSON object:

    tokens        maps each token to "valid", "expired", or the scopes it has, separated by spaces
    realm         (default: "Test Bearer"; null: none)
    bare          challenges with the scheme alone, and rejects without an error code
    schemes       the schemes of a challenge, in this order (default: ["Bearer"]); "Basic" is another
    user          the account that Basic accepts, "jdoe:password"
    unauthorized  also sends insufficient_scope with status 401
    metadata      true: challenges refer to the resource's metadata (RFC 9728), which says so; a text: to that address
    issuer        the provider in the metadata
    unnamed       insufficient_scope names no scope
    scope         the scope that it names (default: "admin audit")
    dpop          demands proofs with DPoP (RFC 9449 §7), a scheme of a challenge: an object, with `nonce` one with this
                  nonce, which all responses have; `endless`: asks for a new nonce each time; `once`: gives a new nonce
                  with each response, and accepts each once; `late`: gives one only in reply to a proof; `unread`:
                  invites content only with that nonce. A token with the state "bound" is not accepted as a bearer
                  token
    held          the path whose first challenge has its content only after the next POST to /control
    step_up       maps a path to what its challenges say if the token is not among its `tokens`: `error`, and others

CONTROL may change while the server runs: a POST to /control replaces it, and is not logged. /admin requires the scope
`admin`, /malformed is an invalid request. Writes one JSON object per request to LOG.
"""

import base64
import json
import re
import secrets
import sys
import threading
import time

import jose
from logging_server import ControlledServer, LoggingHandler

# RFC 6750 §2.1.
CREDENTIALS = re.compile(r"Bearer +([A-Za-z0-9\-._~+/]+=*)")


class Handler(LoggingHandler):
    holds, invites = False, True

    def respond(self):
        body = self.read_content() if self.invites else b""
        self.holds = False
        if self.path == "/control":
            self.server.control = self.server.defaults | json.loads(body)
            self.server.changed.set()
            return self.reply(204, b"")
        value = self.headers.get("Authorization")
        if self.path == "/.well-known/oauth-protected-resource" and self.server.control.get("metadata"):
            self.server.log({"method": self.command, "path": self.path, "status": 200, "authorization": value})
            return self.reply(200, self.metadata(), [("Content-Type", "application/json")])
        self.key = self.refusal = None
        status, error, scope = self.judge(value)
        given = self.nonce(value)
        self.holds = value is None and self.path == self.server.control.get("held")
        if self.holds:
            self.server.changed.clear()
        self.server.log({
            "key": self.key, "refusal": self.refusal, "proof": self.headers.get("DPoP"), "given": given,
            "nonce": self.proof_nonce, "count": len(body),
            "method": self.command, "path": self.path, "status": status, "authorization": value, "why": error,
            "auth": value and value.split(" ")[0],
        })
        nonce = [("DPoP-Nonce", given)] if given else []
        if status == 200:
            return self.reply(200, f"welcome to {self.path}\n".encode(), nonce)
        challenges = nonce + [("WWW-Authenticate", challenge) for challenge in self.challenges(error, scope)]
        self.close_connection = self.close_connection or not self.invites
        self.reply(status, f"origin says: {error}\n".encode(), challenges)

    def handle_expect_100(self):
        control = self.server.control.get("dpop", {})
        self.invites = not control.get("unread") or self.proof_nonce == control["nonce"]
        return not self.invites or super().handle_expect_100()

    def end_headers(self):
        super().end_headers()
        if self.holds:
            self.server.changed.wait()

    def judge(self, value):
        """Status, error code and scope for a request with this Authorization."""
        control = self.server.control
        if value is None:
            return 401, None, None
        if value.startswith("Basic ") and "Basic" in control["schemes"]:
            accepted = base64.b64decode(value[6:]).decode() == control.get("user")
            return (200, None, None) if accepted else (401, None, None)
        if value.startswith("DPoP ") and "dpop" in control:
            return self.judge_bound(value[5:])
        match = CREDENTIALS.fullmatch(value)
        if not match or self.path.startswith("/malformed"):
            return 400, "invalid_request", None
        state = control["tokens"].get(match[1])
        if state in (None, "expired", "bound"):
            return 401, "invalid_token", None
        required = control.get("step_up", {}).get(self.path)
        if required and match[1] not in required["tokens"]:
            return 401, required["error"], required
        if self.path.startswith("/admin") and "admin" not in state.split(" "):
            status = 401 if control.get("unauthorized") else 403
            return status, "insufficient_scope", control.get("scope", "admin audit")
        return 200, None, None

    @property
    def proof_nonce(self):
        try:
            return jose.parts(self.headers["DPoP"])[1].get("nonce")
        except Exception:
            return None

    def accepted(self):
        """The nonce that a proof must have, or a set of which it must have one; None for any."""
        control = self.server.control.get("dpop", {})
        if control.get("once"):
            return self.server.nonces
        return secrets.token_urlsafe(8) if control.get("endless") else control.get("nonce")

    def nonce(self, value):
        """The nonce of the response to a request with this Authorization."""
        control = self.server.control.get("dpop", {})
        if control.get("late") and value is None:
            return None
        if control.get("once"):
            given = secrets.token_urlsafe(8)
            with self.server.proofs_lock:
                self.server.nonces.add(given)
            return given
        return self.accepted()

    def judge_bound(self, token):
        """The same for a token with a proof, which is accepted once."""
        url = self.url + ("" if self.path == "*" else self.path.split("?")[0])
        try:
            with self.server.proofs_lock:
                self.key = self.server.proofs.check(
                    self.headers.get_all("DPoP") or [], self.command, url, time.time(), token, self.accepted())
        except jose.Refused as error:
            self.refusal = str(error)
            return 401, self.refusal if self.refusal == "use_dpop_nonce" else "invalid_dpop_proof", None
        good = self.server.control["tokens"].get(token) == "bound"
        return (200, None, None) if good else (401, "invalid_token", None)

    def challenges(self, error, scope):
        control = self.server.control
        for scheme in control["schemes"]:
            if scheme not in ("Bearer", "DPoP"):
                if error is None or error == "invalid_token":
                    yield f'{scheme} realm="weaker"'
                continue
            parts = ['algs="ES256 PS256"'] if scheme == "DPoP" else []
            if not control.get("bare"):
                if control["realm"] is not None:
                    parts.append('realm="' + control["realm"] + '"')
                if error:
                    parts += [f'error="{error}"', 'error_description="as RFC 6750 says"']
                if isinstance(scope, dict):
                    parts += [f'{name}="{scope[name]}"' for name in scope if name not in ("error", "tokens")]
                elif scope and not control.get("unnamed"):
                    parts.append(f'scope="{scope}"')
                if control.get("metadata"):
                    own = self.url + "/.well-known/oauth-protected-resource"
                    parts.append(f'resource_metadata="{own if control["metadata"] is True else control["metadata"]}"')
            yield " ".join([scheme, ", ".join(parts)]).strip()

    @property
    def url(self):
        return f"https://{self.headers['Host']}"

    def metadata(self):
        return json.dumps({
            "resource": self.url, "authorization_servers": [self.server.control.get("issuer")],
            "scopes_supported": ["admin", "audit"], "bearer_methods_supported": ["header"],
        }).encode()


class Server(ControlledServer):
    defaults = {"realm": "Test Bearer", "schemes": ["Bearer"], "tokens": {}}
    proofs, proofs_lock, nonces, changed = jose.Proofs(), threading.Lock(), set(), threading.Event()


Server(Handler, *sys.argv[1:5]).run()
