# SPDX-License-Identifier: Apache-2.0
"""An origin and parent proxy that asks for Basic, and responds to a password only after a request for /release.

Usage: slow_verdict.py PASSWORD    Prints `listening PORT`, and `asked N` for the Nth request with a password.
"""

import base64
import http.server
import sys
import threading

from logging_server import LoggingHandler

EXPECTED = "Basic " + base64.b64encode(b"jdoe:" + sys.argv[1].encode()).decode()
ANSWERS = threading.Semaphore(0)
LOCK = threading.Lock()
ASKED = [0]


class Handler(LoggingHandler):
    def respond(self):
        if self.path == "/release":
            ANSWERS.release()
            return self.reply(200, b"released")
        status, name = (407, "Proxy-Authenticate") if self.command == "CONNECT" else (401, "WWW-Authenticate")
        answer = self.headers.get("Proxy-Authorization") or self.headers.get("Authorization")
        if answer:
            with LOCK:
                ASKED[0] += 1
                print("asked", ASKED[0], flush=True)
            ANSWERS.acquire()
        try:
            if answer == EXPECTED:
                self.close_connection = self.command == "CONNECT"
                self.reply(200, b"ok" if self.command == "GET" else b"")
            else:
                self.reply(status, b"no", [(name, 'Basic realm="slow"')])
        except OSError:
            self.close_connection = True

    do_GET = do_CONNECT = respond


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.tls = None
print("listening", server.server_port, flush=True)
server.serve_forever()
