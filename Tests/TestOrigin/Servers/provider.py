# SPDX-License-Identifier: Apache-2.0
"""An OAuth 2.0 and OpenID Connect provider for tests. Everybody who opens the authorization page is signed in, unless
there are sessions.

Usage: provider.py CONTROL LOG [CERT KEY]    Prints `listening PORT`; http without CERT. CONTROL is a JSON object:

    lifetime      of access tokens, in seconds (default: 3600)
    token         the next access tokens, in order; random ones follow
    subject       of the ID token (default: "248289761001")
    refresh       whether refresh tokens are issued (default: true); each can be used once, and a second use ends the
                  sign-in (RFC 9700 §4.14.2)
    fail          maps a path to the status with which it answers; "hang": does not answer; "close": closes the
                  connection; "drip": sends a byte a second
    error         at /authorize: sent instead of a code; at /token: an error code for refreshes
    description   of that error
    scope         the scope of the tokens (default: the one that is asked for)
    forge         "none": an unsigned ID token; "key": signed with another key; "audience", "nonce", "expired": a wrong
                  claim
    acr           of the ID token
    age           how many seconds before it the person has signed in, `auth_time`
    register      supports dynamic client registration (RFC 7591); its members are added to the answer
    padding       how many characters are added to refresh tokens
    hold          maps a grant type to the seconds for which the answer to it is held back
    single        whether a new sign-in ends those before it
    redirect      changes parameters of the authorization response; one that is empty is left out
    push          supports pushed authorization requests (RFC 9126) and requires them
    device        how many polls find that the person has not confirmed yet (default: 1)
    no_code_url   whether the address with the code in it is left out of the device authorization response
    session       the name of a cookie by which a browser stays signed in: without it, /authorize asks for a password,
                  which is sent to /password; /whoami says who is signed in, and /logout signs out
    attributes    of that cookie (default: "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600")
    typed         the password that a script on that page enters
    embed         a URL that the page /embed shows in a frame
    form_post     answers with a page that posts the response
    first         an array: each request to /authorize is redirected to the first address in it, which is removed
    page          HTML that /authorize answers with, in place of a redirect to the address that replaces REDIRECT in it
    policy        a file without which no token is issued: a protection policy is required
    policy_status the status of that answer (default: 400)
    secret        of the client, without which the token, device, push and revocation endpoints answer invalid_client
    method        by which the secret has to come: "basic" or "post"; the only one in the metadata (default: both)
    certificate   the file of the client's certificate, whose key has to sign client assertions (RFC 7523 §2.2)
    algorithms    of the assertions in the metadata (default: it does not say)
    audience      of the assertions (default: the issuer)
    dpop          issues tokens that are bound to the key of the proof (RFC 9449), and requires one at /token; with its
                  member `nonce`, one with this nonce; `endless`: asks for a new nonce each time; `type`: the token's
    assertion     the JWT that is accepted for a token; its grants and token exchange are logged as `token`
    commas        whether the scope of the tokens is written with commas, as GitHub does
    error_status  the status of error responses of the token endpoint (default: 400)
    basic         "user:password" with which /authorize challenges (Basic)

HOST is a name in a network of the server's own, whose loopback interface is down; the port is 443 then.

CONTROL may change while the server runs: a POST to /control replaces it, and is not logged. Writes one JSON object for
each request to LOG. It has no secret: codes and tokens are replaced by their kind. `response` is the number of the
token response with which a revoked token was issued.
"""

import base64
import fcntl
import hashlib
import html
import http.cookies
import http.server
import json
import os
import secrets
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

import jose
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT = "countersign-tests"
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
DEFAULTS = {
    "lifetime": 3600, "token": [], "subject": "248289761001", "refresh": True, "fail": {}, "redirect": {}, "device": 1,
    "attributes": "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600",
}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, control, log, tls, host):
        super().__init__(("127.0.0.1", 443 if host else 0), Handler)
        self.lock = threading.Lock()
        self.log_file = open(log, "a", buffering=1)
        self.tls = tls
        self.set(control)
        self.keys = [rsa.generate_private_key(65537, 2048) for _ in range(2)]
        self.codes, self.refresh_tokens, self.used, self.pushed, self.devices = {}, {}, set(), {}, {}
        self.revoked, self.sessions = [], set()
        self.responses, self.response_of = 0, {}
        self.assertions, self.proofs, self.bound = jose.Assertions(), jose.Proofs(), {}
        self.host = host or ("provider.test.localhost" if tls else "127.0.0.1")

    def set(self, control):
        self.control = DEFAULTS | control

    @property
    def issuer(self):
        if self.server_port == 443:
            return f"https://{self.host}"
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.server_port}"

    def log(self, entry):
        with self.lock:
            self.log_file.write(json.dumps(entry) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def setup(self):
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def log_message(self, *_):
        pass

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/control":
            self.server.set(json.loads(body))
            return self.reply(204)
        form = {} if url.path == "/register" else dict(urllib.parse.parse_qsl(body, keep_blank_values=True))
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        entry = {"method": self.command, "path": url.path, "grant": form.get("grant_type"), "query": sorted(query)}
        if url.path == "/authorize":
            entry["parameters"] = {name: query[name] for name in query if name not in ("state", "nonce")}
        if url.path == "/token":
            entry["claims"], entry["client_info"] = form.get("claims"), form.get("client_info")
        if url.path == "/register":
            entry["registration"] = json.loads(body)
        if url.path == "/revoke":
            entry["hint"] = form.get("token_type_hint")
            entry["response"] = self.server.response_of.get(form.get("token"))
        self.url, self.session = self.path, self.cookie() in self.server.sessions
        entry["session"] = self.session
        failure = self.server.control["fail"].get(url.path)
        if failure == "hang":
            self.server.log(entry | {"status": 0})
            time.sleep(60)
            return
        if failure == "drip":
            self.server.log(entry | {"status": 0})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "3600")
            self.end_headers()
            try:
                for _ in range(60):
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    time.sleep(1)
            except OSError:
                pass
            self.close_connection = True
            return
        if failure == "close":
            self.server.log(entry | {"status": 0})
            self.close_connection = True
            return
        if failure:
            self.server.log(entry | {"status": failure})
            return self.reply(failure, b"<p>broken</p>", "text/html")
        name = "do_" + url.path.strip("/").replace(".well-known/", "").replace("-", "_").replace("/", "_")
        if url.path in ("/token", "/revoke", "/device", "/push"):
            entry["client"] = self.authenticate(form)
            if entry["client"] == "refused":
                self.server.log(entry | {"status": 401})
                return self.reply(401, b'{"error": "invalid_client"}', "application/json")
        self.key = None
        if url.path == "/token" and "dpop" in self.server.control:
            refusal = self.prove(entry)
            if refusal:
                self.server.log(entry | {"status": 400, "refusal": refusal})
                error = refusal if refusal == "use_dpop_nonce" else "invalid_dpop_proof"
                fields = [("DPoP-Nonce", self.nonce())] if self.nonce() else []
                return self.reply(400, json.dumps({"error": error}).encode(), "application/json", fields)
        action = getattr(self, name, None)
        if action is None:
            self.server.log(entry | {"status": 404})
            return self.reply(404, b"nothing here", "text/plain")
        with self.server.lock:
            status, content, fields = self.challenge(url.path) or action(query, form)
        self.server.log(entry | {"status": status})
        time.sleep(self.server.control.get("hold", {}).get(entry["grant"], 0))
        if isinstance(content, str):
            return self.reply(status, content.encode(), "text/html", fields)
        self.reply(status, b"" if content is None else json.dumps(content).encode(), "application/json", fields)

    do_GET = do_POST = handle_any

    def authenticate(self, form):
        """How the client has sent its secret: "basic", "post" or "none"; "refused" without the right one."""
        if self.server.control.get("certificate"):
            return self.assert_client(form)
        secret, wanted = self.server.control.get("secret"), self.server.control.get("method")
        field = self.headers.get("Authorization") or ""
        if field.startswith("Basic "):
            pair = base64.b64decode(field[6:]).decode().split(":", 1)
            name, sent = (urllib.parse.unquote_plus(half) for half in pair)
            form.setdefault("client_id", name)
            method = "basic"
        else:
            sent, method = form.get("client_secret"), "post" if "client_secret" in form else "none"
        good = sent == secret and (not secret or wanted in (None, method))
        return method if good else "refused"

    def nonce(self):
        control = self.server.control["dpop"]
        return secrets.token_urlsafe(8) if control.get("endless") else control.get("nonce")

    def prove(self, entry):
        """Why the proof is refused; None if it is not."""
        try:
            with self.server.lock:
                self.key = entry["key"] = self.server.proofs.check(
                    self.headers.get_all("DPoP") or [], self.command, self.server.issuer + "/token", time.time(),
                    nonce=self.nonce())
        except jose.Refused as error:
            return str(error)

    def assert_client(self, form):
        """The algorithm of the client's assertion, or "refused"."""
        control = self.server.control
        try:
            if form.get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
                raise jose.Refused("no assertion")
            with open(control["certificate"], "rb") as file, self.server.lock:
                return self.server.assertions.check(
                    form["client_assertion"], file.read(), control.get("audience", self.server.issuer), CLIENT,
                    time.time(), control.get("algorithms"))
        except jose.Refused as error:
            self.server.log({"refusal": str(error)})
            return "refused"

    def reply(self, status, body=b"", kind=None, fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    # The documents

    def do_openid_configuration(self, query, form):
        issuer, control = self.server.issuer, self.server.control
        document = {
            "issuer": issuer, "authorization_endpoint": f"{issuer}/authorize", "token_endpoint": f"{issuer}/token",
            "jwks_uri": f"{issuer}/keys", "revocation_endpoint": f"{issuer}/revoke",
            "end_session_endpoint": f"{issuer}/logout", "device_authorization_endpoint": f"{issuer}/device",
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"], "response_modes_supported": ["query", "form_post"],
            "id_token_signing_alg_values_supported": ["RS256"], "subject_types_supported": ["public"],
            "authorization_response_iss_parameter_supported": True,
        }
        if control.get("secret"):
            methods = [control["method"]] if control.get("method") else ["basic", "post"]
            document["token_endpoint_auth_methods_supported"] = [f"client_secret_{method}" for method in methods]
        if control.get("certificate"):
            document["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
        if control.get("algorithms"):
            document["token_endpoint_auth_signing_alg_values_supported"] = control["algorithms"]
        if control.get("push"):
            document["pushed_authorization_request_endpoint"] = f"{issuer}/push"
            document["require_pushed_authorization_requests"] = True
        if "register" in control:
            document["registration_endpoint"] = f"{issuer}/register"
            document["scopes_supported"] = ["openid", "offline_access", "admin"]
        return 200, document | control.get("metadata", {}), ()

    def do_keys(self, query, form):
        numbers = self.server.keys[0].public_key().public_numbers()
        key = {
            "kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256", "n": b64(numbers.n.to_bytes(256, "big")),
            "e": b64(numbers.e.to_bytes(3, "big")),
        }
        return 200, {"keys": [key]}, ()

    # Sessions

    def cookie(self):
        name = self.server.control.get("session")
        cookies = http.cookies.SimpleCookie(self.headers.get("Cookie") or "")
        return cookies[name].value if name and name in cookies else None

    def set_cookie(self, value, end=""):
        name, attributes = self.server.control["session"], self.server.control["attributes"]
        return ("Set-Cookie", f"{name}={value}; {attributes}{end}")

    def do_password(self, query, form):
        if form.get("password") != "hunter2":
            return 403, "<p>wrong password</p>", ()
        value = "canary-session-" + secrets.token_urlsafe(16)
        self.server.sessions.add(value)
        return 302, "", [("Location", form["back"]), self.set_cookie(value), ("Set-Cookie", "page=1; Path=/")]

    def typing(self):
        typed = self.server.control.get("typed")
        if not typed:
            return ""
        fill = f"document.forms[0].password.value = {json.dumps(typed)}"
        return f"<script>addEventListener('load', () => {{ {fill}; document.forms[0].submit() }})</script>"

    def do_whoami(self, query, form):
        return 200, "jdoe" if self.session else "nobody", ()

    def do_logout(self, query, form):
        self.server.sessions.discard(self.cookie())
        gone = [self.set_cookie("", "; Max-Age=0")] if self.server.control.get("session") else ()
        return 200, "<p>signed out</p>", gone

    def do_embed(self, query, form):
        return 200, f'<p>a page</p><iframe src="{html.escape(self.server.control["embed"])}"></iframe>', ()

    # Authorization

    def challenge(self, path):
        wanted = self.server.control.get("basic")
        if not wanted or path != "/authorize":
            return None
        if self.headers.get("Authorization") == "Basic " + base64.b64encode(wanted.encode()).decode():
            return None
        return 401, "<p>no</p>", [("WWW-Authenticate", 'Basic realm="sign-in"')]

    def do_push(self, query, form):
        name = "urn:ietf:params:oauth:request_uri:" + secrets.token_urlsafe(8)
        self.server.pushed[name] = form
        return 201, {"request_uri": name, "expires_in": 60}, ()

    def do_authorize(self, query, form):
        control = self.server.control
        if control.get("first"):
            return 302, "", [("Location", control["first"].pop(0))]
        if "request_uri" in query:
            query = self.server.pushed.pop(query["request_uri"], None)
        elif control.get("push"):
            query = None
        good = query and query.get("client_id") == CLIENT and query.get("code_challenge_method") == "S256"
        if not good or query.get("response_type") != "code":
            return 400, "<p>invalid request</p>", ()
        if control.get("session") and not self.session:
            back = f'<input type="hidden" name="back" value="{html.escape(self.url)}">'
            page = f'<form method="post" action="/password">{back}<input name="password"></form>'
            return 200, page + self.typing(), ()
        answer = {"state": query.get("state"), "iss": self.server.issuer}
        if control.get("error"):
            answer |= {"error": control["error"], "error_description": control.get("description", "as the test wants")}
        else:
            code = secrets.token_urlsafe(16)
            self.server.codes[code] = query
            answer["code"] = code
        answer = {name: value for name, value in (answer | control["redirect"]).items() if value}
        if query.get("response_mode") == "form_post":
            inputs = "".join(f'<input type="hidden" name="{n}" value="{v}">' for n, v in answer.items())
            page = f'<form method="post" action="{query["redirect_uri"]}">{inputs}</form>'
            return 200, page + "<script>document.forms[0].submit()</script>", ()
        location = query["redirect_uri"] + "?" + urllib.parse.urlencode(answer)
        if control.get("page"):
            return 200, "<!doctype html><title>Sign in</title>" + control["page"].replace("REDIRECT", location), ()
        return 302, "", [("Location", location)]

    def do_device(self, query, form):
        code = secrets.token_urlsafe(16)
        self.server.devices[code] = [self.server.control["device"], form]
        response = {
            "device_code": code, "user_code": "WDJB-MJHT", "verification_uri": f"{self.server.issuer}/enter",
            "expires_in": 60, "interval": 1,
        }
        if not self.server.control.get("no_code_url"):
            response["verification_uri_complete"] = f"{self.server.issuer}/enter?user_code=WDJB-MJHT"
        return 200, response, ()

    # Tokens

    def do_token(self, query, form):
        status, answer, fields = self.granted(form)
        if status == 400:
            status = self.server.control.get("error_status", 400)
        return status, answer, fields

    def granted(self, form):
        grant = form.get("grant_type")
        machine = {
            "client_credentials": None, "urn:ietf:params:oauth:grant-type:jwt-bearer": form.get("assertion"),
            "urn:ietf:params:oauth:grant-type:token-exchange": form.get("subject_token"),
        }
        if grant in machine:
            wanted = self.server.control.get("assertion")
            if machine[grant] is not None and machine[grant] != wanted:
                return 400, {"error": "invalid_grant", "error_description": "the assertion has expired"}, ()
            if machine[grant] is None and form.get("client_id") != CLIENT:
                return 401, {"error": "invalid_client"}, ()
            answer = self.tokens(form.get("scope", ""), None, secrets.token_hex(4))
            answer.pop("refresh_token", None)
            return 200, answer | {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, ()
        if form.get("client_id") != CLIENT:
            return 401, {"error": "invalid_client"}, ()
        policy = self.server.control.get("policy")
        if policy and not os.path.exists(policy):
            refusal = {
                "error": "unauthorized_client", "suberror": "protection_policy_required", "adi": "jdoe@acme.example",
                "error_description": "a protection policy is required",
            }
            return self.server.control.get("policy_status", 400), refusal, ()
        if grant == "authorization_code":
            asked = self.server.codes.pop(form.get("code"), None)
            challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
            good = asked and asked.get("dpop_jkt") == self.key
            if not good or asked["redirect_uri"] != form.get("redirect_uri") or asked["code_challenge"] != challenge:
                return 400, {"error": "invalid_grant", "error_description": "code"}, ()
            if self.server.control.get("single"):
                self.server.refresh_tokens.clear()
            return 200, self.tokens(asked.get("scope", ""), asked.get("nonce"), secrets.token_hex(4)), ()
        if grant == "refresh_token":
            token = form.get("refresh_token")
            if self.server.control.get("error"):
                description = self.server.control.get("description")
                more = {"error_description": description} if description else {}
                return 400, {"error": self.server.control["error"]} | more, ()
            if token in self.server.used:
                self.server.refresh_tokens.clear()
                return 400, {"error": "invalid_grant", "error_description": "used twice"}, ()
            if token not in self.server.refresh_tokens:
                return 400, {"error": "invalid_grant", "error_description": "unknown"}, ()
            if self.server.bound.get(token) != self.key:
                return 400, {"error": "invalid_grant", "error_description": "another key"}, ()
            self.server.used.add(token)
            family, scope = self.server.refresh_tokens.pop(token)
            return 200, self.tokens(scope, None, family), ()
        if grant == "urn:ietf:params:oauth:grant-type:device_code":
            device = self.server.devices.get(form.get("device_code"))
            if not device:
                return 400, {"error": "invalid_grant"}, ()
            if device[0] > 0:
                device[0] -= 1
                return 400, {"error": "authorization_pending"}, ()
            return 200, self.tokens(device[1].get("scope", ""), None, secrets.token_hex(4)), ()
        return 400, {"error": "unsupported_grant_type"}, ()

    def tokens(self, scope, nonce, family):
        control = self.server.control
        access = control["token"].pop(0) if control["token"] else "canary-access-" + secrets.token_urlsafe(16)
        kind = control["dpop"].get("type", "DPoP") if "dpop" in control else "Bearer"
        answer = {"access_token": access, "token_type": kind, "expires_in": control["lifetime"], "scope": scope}
        if "scope" in control:
            answer["scope"] = control["scope"]
        if control.get("commas"):
            answer["scope"] = answer["scope"].replace(" ", ",")
        if control["refresh"]:
            padding = "x" * control.get("padding", 0)
            answer["refresh_token"] = "canary-refresh-" + secrets.token_urlsafe(16) + padding
            self.server.refresh_tokens[answer["refresh_token"]] = (family, scope)
            self.server.bound[answer["refresh_token"]] = self.key
        self.server.responses += 1
        for name in ("access_token", "refresh_token"):
            if name in answer:
                self.server.response_of[answer[name]] = self.server.responses
        info = b64(json.dumps({"uid": "object-1", "utid": "tenant-1"}).encode())
        answer["client_info"] = info
        if "openid" in scope.split(" "):
            answer["id_token"] = self.identity(nonce, access)
        return answer

    def identity(self, nonce, access):
        forge, now = self.server.control.get("forge"), int(time.time())
        claims = {
            "iss": self.server.issuer, "sub": self.server.control["subject"], "aud": CLIENT, "iat": now,
            "exp": now + 600, "preferred_username": "jdoe@acme.example",
            "at_hash": b64(hashlib.sha256(access.encode()).digest()[:16]),
        }
        if nonce:
            claims["nonce"] = nonce
        if "acr" in self.server.control:
            claims["acr"] = self.server.control["acr"]
        if "age" in self.server.control:
            claims["auth_time"] = now - self.server.control["age"]
        if forge == "audience":
            claims["aud"] = "somebody-else"
        if forge == "nonce":
            claims["nonce"] = "another"
        if forge == "expired":
            claims |= {"iat": now - 7200, "exp": now - 3600}
        header = {"alg": "none" if forge == "none" else "RS256", "kid": "one", "typ": "JWT"}
        text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
        if forge == "none":
            return text + "."
        key = self.server.keys[1 if forge == "key" else 0]
        return text + "." + b64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))

    def do_register(self, query, form):
        return 201, {"client_id": CLIENT, "token_endpoint_auth_method": "none"} | self.server.control["register"], ()

    def do_revoke(self, query, form):
        self.server.revoked.append(form.get("token"))
        self.server.refresh_tokens.pop(form.get("token"), None)
        return 200, None, ()


def main():
    control, log = sys.argv[1:3]
    tls = None
    if len(sys.argv) > 3:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[3], sys.argv[4])
    host = sys.argv[5] if len(sys.argv) > 5 else None
    if host:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
            fcntl.ioctl(interface, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    server = Provider(json.loads(control), log, tls, host)
    print(f"listening {server.server_port}", flush=True)
    server.serve_forever()


main()
