# SPDX-License-Identifier: Apache-2.0
"""An https server with a git repository, which wants a token as a password or as Bearer.

Usage: git_origin.py FOLDER CERT KEY TOKEN LOG    Prints `listening PORT`. Writes one line for each request: the status,
the scheme and the user of its Authorization field.
"""

import base64
import http.server
import ssl
import sys

folder, certificate, key, token, log = sys.argv[1:]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=folder)

    def do_GET(self):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        user, secret = "-", value
        if scheme == "Basic":
            user, _, secret = base64.b64decode(value).decode().partition(":")
        is_right = secret == token
        with open(log, "a") as file:
            print(200 if is_right else 401, scheme or "-", user, file=file)
        if is_right:
            return super().do_GET()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", server.server_port, flush=True)
server.serve_forever()
