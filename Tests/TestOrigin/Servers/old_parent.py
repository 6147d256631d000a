# SPDX-License-Identifier: Apache-2.0
"""A parent proxy of the last century, on a free port of loopback. Prints `listening PORT`.

Usage: old_parent.py USERS SCHEME LINE LOG
USERS: a file with one line DOMAIN:USER:PASSWORD. SCHEME: `basic`, with a realm that has no quotes, or `ntlm`, verified
by pyspnego. LINE: how lines end, `crlf` or `lf`. LOG: gets a line `STATUS METHOD CONNECTION` per request.

It speaks HTTP/1.0, and keeps a connection only for a request with `Proxy-Connection: keep-alive`. Every name that ends
in localhost is this machine.
"""

import base64
import itertools
import os
import socket
import sys
import threading
import urllib.parse

os.environ["NTLM_USER_FILE"] = sys.argv[1]

import spnego  # noqa: E402

SCHEME = sys.argv[2]
LINE = b"\n" if sys.argv[3] == "lf" else b"\r\n"
with open(sys.argv[1], encoding="utf-8") as users:
    BASIC = base64.b64encode(users.read().strip().split(":", 1)[1].encode())
numbers = itertools.count(1)
log = open(sys.argv[4], "a", buffering=1, encoding="utf-8")


def connect(host, port):
    return socket.create_connection(("127.0.0.1" if host.endswith("localhost") else host, port))


class Client:
    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile("rb")
        self.number = next(numbers)
        self.context = None
        self.is_authenticated = False

    def serve(self):
        while self.request():
            pass
        self.connection.close()

    def request(self):
        """Serves one request, and returns whether the connection is kept."""
        line = self.file.readline().split()
        if len(line) != 3:
            return False
        self.method, self.target = line[0].decode(), line[1].decode()
        self.fields = {}
        while field := self.file.readline().strip():
            name, value = field.split(b":", 1)
            self.fields[name.lower()] = value.strip()
        self.content = self.file.read(int(self.fields.get(b"content-length", b"0")))
        self.keeps = self.fields.get(b"proxy-connection", b"").lower() == b"keep-alive"
        challenge = self.challenge()
        if challenge is not None:
            return self.respond(407, b"Proxy-Authenticate: " + challenge, b"no")
        return self.tunnel() if self.method == "CONNECT" else self.forward()

    def challenge(self):
        """The challenge to send, or None for an authenticated request."""
        words = self.fields.get(b"proxy-authorization", b"").split()
        if SCHEME == "basic":
            return None if words[1:] == [BASIC] else b"Basic realm=Corporate Proxy - authorised users only"
        if not words:
            return None if self.is_authenticated else b"NTLM"
        try:
            token = base64.b64decode(words[1])
            if token[8] == 1:
                self.context = spnego.server(protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm)
                return b"NTLM " + base64.b64encode(self.context.step(token))
            self.context.step(token)
            self.is_authenticated = True
            return None
        except Exception:
            return b"NTLM"

    def respond(self, status, field, content):
        log.write(f"{status} {self.method} {self.number}\n")
        lines = [b"HTTP/1.0 %d x" % status, field, b"Content-Length: %d" % len(content)]
        if self.keeps:
            lines.append(b"Proxy-Connection: keep-alive")
        self.connection.sendall(LINE.join(lines) + 2 * LINE + content)
        return self.keeps

    def forward(self):
        url = urllib.parse.urlsplit(self.target)
        with connect(url.hostname, url.port or 80) as origin:
            head = f"{self.method} {url.path or '/'} HTTP/1.0\r\nHost: {url.netloc}\r\n"
            head += f"Content-Length: {len(self.content)}\r\n\r\n"
            origin.sendall(head.encode() + self.content)
            response = origin.makefile("rb").read()
        head, content = response.split(b"\r\n\r\n", 1)
        return self.respond(int(head.split()[1]), b"X-Parent: old", content)

    def tunnel(self):
        host, port = self.target.rsplit(":", 1)
        with connect(host, int(port)) as origin:
            log.write(f"200 CONNECT {self.number}\n")
            self.connection.sendall(b"HTTP/1.0 200 Connection established" + 2 * LINE)
            threading.Thread(target=relay, args=(origin, self.connection), daemon=True).start()
            relay(self.connection, origin)
        return False


def relay(source, sink):
    try:
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


server = socket.create_server(("127.0.0.1", 0))
print("listening", server.getsockname()[1], flush=True)
while True:
    client = Client(server.accept()[0])
    threading.Thread(target=client.serve, daemon=True).start()
