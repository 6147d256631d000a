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
    step_up       maps a path to what its challenges say if the token is not among its `tokens`: `error`, and others

CONTROL may change while the server runs: a POST to /control replaces it, and is not logged. /admin requires the scope
`admin`, /malformed is an invalid request. Writes one JSON object per request to LOG.
"""

import base64
import json
import re
import sys

from logging_server import ControlledServer, LoggingHandler

# RFC 6750 §2.1.
CREDENTIALS = re.compile(r"Bearer +([A-Za-z0-9\-._~+/]+=*)")


class Handler(LoggingHandler):
    def respond(self):
        body = self.read_content()
        if self.path == "/control":
            self.server.control = self.server.defaults | json.loads(body)
            return self.reply(204, b"")
        value = self.headers.get("Authorization")
        if self.path == "/.well-known/oauth-protected-resource" and self.server.control.get("metadata"):
            self.server.log({"method": self.command, "path": self.path, "status": 200, "authorization": value})
            return self.reply(200, self.metadata(), [("Content-Type", "application/json")])
        status, error, scope = self.judge(value)
        self.server.log({
            "method": self.command, "path": self.path, "status": status, "authorization": value, "why": error,
            "auth": value and value.split(" ")[0],
        })
        if status == 200:
            return self.reply(200, f"welcome to {self.path}\n".encode())
        challenges = [("WWW-Authenticate", challenge) for challenge in self.challenges(error, scope)]
        self.reply(status, f"origin says: {error}\n".encode(), challenges)

    def judge(self, value):
        """Status, error code and scope for a request with this Authorization."""
        control = self.server.control
        if value is None:
            return 401, None, None
        if value.startswith("Basic ") and "Basic" in control["schemes"]:
            accepted = base64.b64decode(value[6:]).decode() == control.get("user")
            return (200, None, None) if accepted else (401, None, None)
        match = CREDENTIALS.fullmatch(value)
        if not match or self.path.startswith("/malformed"):
            return 400, "invalid_request", None
        state = control["tokens"].get(match[1])
        if state is None or state == "expired":
            return 401, "invalid_token", None
        required = control.get("step_up", {}).get(self.path)
        if required and match[1] not in required["tokens"]:
            return 401, required["error"], required
        if self.path.startswith("/admin") and "admin" not in state.split(" "):
            status = 401 if control.get("unauthorized") else 403
            return status, "insufficient_scope", control.get("scope", "admin audit")
        return 200, None, None

    def challenges(self, error, scope):
        control = self.server.control
        for scheme in control["schemes"]:
            if scheme != "Bearer":
                if error is None or error == "invalid_token":
                    yield f'{scheme} realm="weaker"'
                continue
            parts = []
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
            yield " ".join(["Bearer", ", ".join(parts)]).strip()

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


Server(Handler, *sys.argv[1:5]).run()
