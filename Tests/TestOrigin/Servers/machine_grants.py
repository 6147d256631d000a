# SPDX-License-Identifier: Apache-2.0
"""The endpoints of GitHub Apps and of service accounts, for tests: each verifies the JWT that the machine has signed.

Usage: machine_grants.py PUBLIC_KEY LIFETIME    Prints `listening PORT`; plain http. One line per request: its path, the
status and, if it was refused, the reason. LIFETIME of tokens is in seconds.

POST /app/installations/42/access_tokens is for the client `app-1`, POST /token for the account `robot` with the `kid`
`key-1`. All installations but 42 are unknown.
"""

import http.server
import json
import secrets
import sys
import time
import urllib.parse

import jose
from cryptography.hazmat.primitives.serialization import load_pem_public_key


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reason = ""
        try:
            status, answer = self.token(body) if self.path == "/token" else self.installation(json.loads(body))
        except jose.Refused as error:
            reason = str(error)
            status, answer = (
                (400, {"error": "invalid_grant", "error_description": f"Invalid JWT: {reason}"})
                if self.path == "/token"
                else (401, {"message": reason})
            )
        print(self.path, status, reason, flush=True)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def claims(self, assertion):
        header, claims, signed, signature = jose.parts(assertion)
        jose.verify(self.server.key, header["alg"], signed, signature)
        now = time.time()
        if header["alg"] != "RS256" or not claims["iat"] <= now or not now < claims["exp"] <= now + 600:
            raise jose.Refused("out of time")
        return header, claims

    def installation(self, wanted):
        scheme, _, assertion = self.headers["Authorization"].partition(" ")
        _, claims = self.claims(assertion)
        if scheme != "Bearer" or set(claims) != {"iss", "iat", "exp"} or claims["iss"] != "app-1":
            raise jose.Refused("Integration not found")
        fields = [self.headers[name] for name in ("Accept", "X-GitHub-Api-Version", "User-Agent")]
        if fields[0] != "application/vnd.github+json" or fields[1] != "2022-11-28" or not fields[2]:
            return 403, {"message": "Request forbidden by administrative rules."}
        if self.path != "/app/installations/42/access_tokens":
            return 404, {"message": "Not Found"}
        if set(wanted.get("permissions", {})) - {"contents", "issues"}:
            return 422, {"message": "The permissions requested are not granted to this installation."}
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.server.lifetime))
        permissions = wanted.get("permissions", {"contents": "write", "issues": "read"})
        return 201, {"token": f"ghs_{secrets.token_hex(18)}", "expires_at": expiry, "permissions": permissions}

    def token(self, body):
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        if set(form) != {"grant_type", "assertion"}:
            return 400, {"error": "invalid_request"}
        header, claims = self.claims(form["assertion"])
        if header["kid"] != "key-1" or claims["iss"] != "robot" or claims["scope"] != "api":
            raise jose.Refused("account not found")
        if claims["aud"] != f"http://127.0.0.1:{self.server.server_port}/token":
            raise jose.Refused("another audience")
        token = f"ya29.c.{secrets.token_urlsafe(30)}..."
        return 200, {"access_token": token, "expires_in": self.server.lifetime, "token_type": "Bearer"}


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[1], "rb") as file:
        server.key = load_pem_public_key(file.read())
    server.lifetime = int(sys.argv[2])
    print("listening", server.server_port, flush=True)
    server.serve_forever()


main()
