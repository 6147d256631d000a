# SPDX-License-Identifier: Apache-2.0
"""A server for device management whose pages are a script, at two origins.

Usage: mdm_server.py ROUTES LOG CERT KEY    Prints `listening PORT OTHERPORT`. ROUTES is a JSON object that maps a path
to an array of answers: the first request gets the first one, and the last one stays. An answer is an object with

    status    (default: 200)
    fields    an array of pairs (default: none)
    type      of the content (default: text/html)
    body      text (default: none)
    needs     a pair: without a field of this name and value the answer is 403

@MDM@ and @OTHER@ in fields and bodies are replaced by the two origins, and @LONG@ by 64 KiB of text. (Base64 has no
@: a certificate made at 03 o'clock contains MDM.) Writes one JSON object for each request to LOG, with all its fields.
"""

import http.server
import json
import ssl
import sys
import threading
import urllib.parse


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def setup(self):
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        with lock:
            answers = routes.get(path) or [{"status": 404, "body": "nothing here"}]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            fields = [[name.lower(), value] for name, value in self.headers.items()]
            entry = {
                "origin": "other" if self.server is other else "mdm", "method": self.command, "path": path,
                "target": self.path, "fields": dict(fields),
            }
            log.write(json.dumps(entry) + "\n")
        if "needs" in answer and self.headers.get(answer["needs"][0]) != answer["needs"][1]:
            answer = {"status": 403, "body": "<p>no token</p>"}
        body = replaced(answer.get("body", "")).encode()
        self.send_response(answer.get("status", 200))
        for name, value in answer.get("fields", []):
            self.send_header(name, replaced(value))
        self.send_header("Content-Type", answer.get("type", "text/html"))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_POST = do_GET


def replaced(text):
    text = text.replace("@MDM@", f"https://mdm.test.localhost:{first.server_port}")
    text = text.replace("@OTHER@", f"https://other.test.localhost:{other.server_port}")
    return text.replace("@LONG@", "x" * 65536)


routes = json.loads(sys.argv[1])
log = open(sys.argv[2], "a", buffering=1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[3], sys.argv[4])
lock = threading.Lock()
first, other = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
for server in (first, other):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", first.server_port, other.server_port, flush=True)
threading.Event().wait()
