# SPDX-License-Identifier: Apache-2.0
"""What the origins in Python have in common: HTTP/1.1 on a free port of loopback, TLS, and a log with one JSON object
per line.
"""

import http.server
import json
import ssl
import sys
import threading


class LoggingHandler(http.server.BaseHTTPRequestHandler):
    """Calls `respond` for every request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def setup(self):
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.respond()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def read_content(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(size))
                if size == 0:
                    while self.rfile.readline().strip():
                        pass
                    return b"".join(parts)
                self.rfile.readline()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status, body, fields=()):
        """Sends a response; `fields` are pairs of name and value."""
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class LoggingServer(http.server.ThreadingHTTPServer):
    """Serves http without a certificate."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, log, certificate=None, key=None, port=0):
        super().__init__(("127.0.0.1", port), handler)
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate, key)
        self.log_file = open(log, "a", encoding="utf-8")
        self.lock = threading.Lock()

    def log(self, entry):
        with self.lock:
            self.log_file.write(json.dumps(entry) + "\n")
            self.log_file.flush()

    def handle_error(self, request, client_address):
        self.log({"error": repr(sys.exc_info()[1])})

    def run(self):
        """Prints `listening PORT` and serves until the process ends."""
        print("listening", self.server_address[1], flush=True)
        self.serve_forever()


class ControlledServer(LoggingServer):
    """A server whose behaviour is the JSON object `control`, with the subclass's defaults."""

    defaults = {}

    def __init__(self, handler, control, log, certificate=None, key=None):
        super().__init__(handler, log, certificate, key)
        self.control = self.defaults | json.loads(control)
