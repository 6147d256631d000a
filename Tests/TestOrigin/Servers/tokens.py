# SPDX-License-Identifier: Apache-2.0
"""Says whose token is in the Authorization field, for a server that asks (RFC 7662, without the form).

Usage: tokens.py TOKEN USER    Prints `listening PORT`.
"""

import http.server
import json
import sys

token, user = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_active = self.headers.get("Authorization") == "Bearer " + token
        body = json.dumps({"active": is_active, "email": user}).encode()
        self.send_response(200 if is_active else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("listening", server.server_port, flush=True)
server.serve_forever()
