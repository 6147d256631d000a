# SPDX-License-Identifier: Apache-2.0
"""A GitHub Enterprise Server with one installation of an app, and the repository jdoe/tools behind `git http-backend`.

Usage: github_server.py FOLDER CERT KEY PUBLIC_KEY    Prints `listening PORT`, then a line for each request: its status,
the kind of its Authorization and its path. FOLDER has jdoe/tools.git, and PUBLIC_KEY is the app's.

POST /api/v3/app/installations/42/access_tokens gives the app `app-1` a token. GET /api/v3/installation/repositories
wants it as Bearer, and git as the password of `x-access-token`.
"""

import base64
import http.server
import json
import os
import secrets
import ssl
import subprocess
import sys
import time

import jose
from cryptography.hazmat.primitives.serialization import load_pem_public_key

folder, certificate, key, public = sys.argv[1:]
with open(public, "rb") as file:
    public = load_pem_public_key(file.read())
tokens = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, fields, data=b""):
        kind = self.headers.get("Authorization", "-").split(" ")[0]
        print(status, kind, self.path, flush=True)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def say(self, status, content):
        self.answer(status, {"Content-Type": "application/json"}, json.dumps(content).encode())

    def content(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_POST(self):
        if self.path == "/api/v3/app/installations/42/access_tokens":
            return self.new_token(self.content())
        self.git(self.content())

    def do_GET(self):
        if self.path != "/api/v3/installation/repositories":
            return self.git(b"")
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or token not in tokens:
            return self.say(401, {"message": "Bad credentials"})
        self.say(200, {"total_count": 1, "repositories": [{"full_name": "jdoe/tools"}]})

    def new_token(self, content):
        try:
            header, claims, signed, signature = jose.parts(self.headers["Authorization"].removeprefix("Bearer "))
            jose.verify(public, header["alg"], signed, signature)
        except jose.Refused as error:
            return self.say(401, {"message": str(error)})
        if claims["iss"] != "app-1" or not claims["iat"] <= time.time() < claims["exp"]:
            return self.say(401, {"message": "Integration not found"})
        token = f"ghs_{secrets.token_hex(18)}"
        tokens.add(token)
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        self.say(201, {"token": token, "expires_at": expiry, "permissions": {"contents": "write"}})

    def git(self, content):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        user, _, token = base64.b64decode(value).decode().partition(":") if scheme == "Basic" else ("", "", "")
        if user != "x-access-token" or token not in tokens:
            return self.answer(401, {"WWW-Authenticate": 'Basic realm="GitHub"'})
        path, _, query = self.path.partition("?")
        variables = {
            "GIT_PROJECT_ROOT": folder, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "REMOTE_USER": user, "PATH": os.environ["PATH"],
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(content)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        done = subprocess.run(["git", "http-backend"], input=content, env=variables, stdout=subprocess.PIPE, check=True)
        head, _, data = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(int(fields.pop("Status", "200").split(" ")[0]), fields, data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", server.server_port, flush=True)
server.serve_forever()
