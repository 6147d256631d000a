# SPDX-License-Identifier: Apache-2.0
"""An origin, and a parent proxy that forwards, which challenge uploads and compare what arrives with what was sent.

Usage: upload_origin.py LOG CERT KEY USERS TOKEN PARENT...    Prints `listening HTTP HTTPS` and a port for each PARENT,
which is a scheme. USERS has lines of DOMAIN:USER:PASSWORD for pyspnego; with `-`, python3-gssapi accepts tickets.

The origin's host names are SCHEME-BEHAVIOUR.test.localhost. The target is /OFFSET/LENGTH/ID: content of that length,
from that place in CONTENT. The behaviours:

    invites     answers an expectation with 100 (Continue), and challenges when the content is there
    ignores     ignores expectations
    slow        as invites, but reads little at a time
    early       ignores expectations, and challenges when a part of the content is there
    challenges  answers an expectation with the challenge

Writes one JSON object per request to LOG: `equal` and `whole` are about its content. Anything else that arrives is
logged as `extra`.
"""

import base64
import hashlib
import json
import os
import random
import re
import socket
import ssl
import sys
import threading
import time

CONTENT = random.Random(17).randbytes(24 << 20)
NONCES = set()
LOCK = threading.Lock()


class Gone(Exception):
    """The peer has closed the connection."""


class Malformed(Exception):
    """Something arrived that is not a request of this test."""


class Connection:
    def __init__(self, server, stream, parent):
        self.server, self.stream, self.parent = server, stream, parent
        self.rest, self.pause, self.step = b"", 0, 1 << 18
        self.acceptor, self.user = None, None

    def more(self):
        if self.pause:
            time.sleep(self.pause)
        data = self.stream.recv(self.step)
        if not data:
            raise Gone()
        return data

    def line(self, end=b"\r\n"):
        while end not in self.rest:
            if len(self.rest) > 65536:
                raise Malformed(self.rest[:60])
            self.rest += self.more()
        line, self.rest = self.rest.split(end, 1)
        return line

    def pieces(self, count):
        """The next bytes."""
        while count > 0:
            data = self.rest or self.more()
            self.rest = data[count:]
            data = data[:count] if self.rest else data
            count -= len(data)
            yield data

    def chunks(self):
        while True:
            size = self.line()
            if not re.fullmatch(rb"[0-9a-f]+", size):
                raise Malformed(b"chunk " + size[:60])
            if int(size, 16) == 0:
                if self.line() != b"":
                    raise Malformed(b"a trailer")
                return
            yield from self.pieces(int(size, 16))
            if self.line() != b"":
                raise Malformed(b"no end of a chunk")

    def run(self):
        try:
            while self.request():
                pass
        except (Gone, OSError, ssl.SSLError):
            if self.rest:
                self.server.log({"extra": repr(self.rest[:60])})
        except Malformed as fault:
            self.server.log({"extra": repr(fault.args[0])})
        finally:
            self.stream.close()

    def request(self):
        head = self.line(b"\r\n\r\n")
        match = re.match(rb"POST (?:http://[^/]+)?/(\d+)/(\d+)/([\w-]+) HTTP/1\.1\r\n", head)
        if not match:
            raise Malformed(head[:60])
        offset, length, number = int(match[1]), int(match[2]), match[3].decode()
        fields = {}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() in fields:
                raise Malformed(line[:60])
            fields[name.lower()] = value.strip().decode()
        scheme, behaviour = fields[b"host"].split(".")[0].split("-")
        scheme = self.parent or scheme
        answer = fields.get(b"proxy-authorization" if self.parent else b"authorization")
        if behaviour == "slow" and not self.pause:
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
            self.pause, self.step = 0.001, 32768
        expects = fields.get(b"expect") is not None
        entry = {"id": number, "scheme": scheme, "chunked": b"transfer-encoding" in fields, "equal": True,
                 "whole": False, "received": 0, "target": f"/{offset}/{length}/{number}"}
        accepted, challenges, opens = self.check(scheme, answer, entry["target"])
        status = 200 if accepted else 407 if self.parent else 401
        entry |= {"status": status, "opens": opens, "answered": answer is not None}
        if opens:
            length = 0
        if behaviour == "challenges" and expects and not accepted:
            self.server.log(entry)
            self.reply(status, challenges, "Connection: close\r\n")
            return False
        if expects and behaviour in ("invites", "slow"):
            self.stream.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if entry["chunked"]:
            content = self.chunks()
        else:
            if int(fields.get(b"content-length", "0")) != length:
                entry["equal"] = False
            content = self.pieces(int(fields.get(b"content-length", "0")))
        is_answered = False
        try:
            for data in content:
                at = offset + entry["received"]
                entry["received"] += len(data)
                if CONTENT[at:at + len(data)] != data or entry["received"] > length:
                    entry["equal"] = False
                if behaviour == "early" and not accepted and entry["received"] > 100_000 and not is_answered:
                    is_answered = True
                    self.reply(status, challenges)
            entry["whole"] = entry["received"] == length
        finally:
            self.server.log(entry)
        if not is_answered:
            self.reply(status, challenges)
        return True

    def reply(self, status, challenges, more=""):
        name = "Proxy-Authenticate" if self.parent else "WWW-Authenticate"
        fields = "".join(f"{name}: {challenge}\r\n" for challenge in challenges)
        self.stream.sendall(f"HTTP/1.1 {status} Status\r\n{fields}{more}Content-Length: 2\r\n\r\nok".encode())

    def check(self, scheme, answer, target):
        """Whether the answer is accepted, the challenges, and whether the request only opens a dialogue."""
        word, _, value = (answer or "").partition(" ")
        if scheme == "basic":
            return answer == self.server.basic, ['Basic realm="up"'], False
        if scheme == "bearer":
            return answer == "Bearer " + self.server.token, ['Bearer realm="up"'], False
        if scheme == "digest":
            return self.digest(value, target) if word == "Digest" else False, [self.nonce()], False
        if self.user and not answer:
            return True, [], False
        challenge = {"ntlm": "NTLM", "negotiate": "Negotiate"}[scheme]
        if word != challenge:
            return False, [challenge], False
        token = base64.b64decode(value)
        opens = token[:9] == b"NTLMSSP\0\x01"
        if scheme == "negotiate" or opens:
            self.acceptor = self.server.acceptor(scheme, self.stream)
        reply = self.acceptor.step(token)
        encoded = challenge + " " + base64.b64encode(reply or b"").decode()
        if self.acceptor.complete:
            self.user = "ntlm" if scheme == "ntlm" else None
            return True, [encoded] if reply else [], False
        return False, [encoded], opens

    def nonce(self):
        nonce = random.randbytes(12).hex()
        with LOCK:
            NONCES.add(nonce)
        return f'Digest realm="up", nonce="{nonce}", qop="auth", algorithm=SHA-256'

    def digest(self, value, target):
        def h(text):
            return hashlib.sha256(text.encode()).hexdigest()
        p = {key: quoted or bare for key, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', value)}
        with LOCK:
            if p["nonce"] not in NONCES:
                return False
            NONCES.remove(p["nonce"])
        secret = h(f"{self.server.user}:up:{self.server.password}")
        expected = h(f"{secret}:{p['nonce']}:{p['nc']}:{p['cnonce']}:auth:" + h(f"POST:{p['uri']}"))
        return p["uri"].endswith(target) and p["response"] == expected


class Server:
    def __init__(self, log, certificate, key, users, token):
        self.file, self.token, self.users = open(log, "a", encoding="utf-8"), token, users
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        self.basic = self.binding = None
        if users != "-":
            from origin import end_point_binding
            self.binding = end_point_binding(certificate)
            os.environ["NTLM_USER_FILE"] = users
            with open(users, encoding="utf-8") as file:
                _, self.user, self.password = file.readline().rstrip("\n").split(":")
            self.basic = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def log(self, entry):
        with LOCK:
            self.file.write(json.dumps(entry) + "\n")
            self.file.flush()

    def acceptor(self, scheme, stream):
        if scheme == "negotiate":
            import gssapi
            return gssapi.SecurityContext(usage="accept")
        import spnego
        binding = self.binding if isinstance(stream, ssl.SSLSocket) else None
        return spnego.server(protocol="ntlm", options=spnego.NegotiateOptions.none, channel_bindings=binding)

    def listen(self, tls=None, parent=None):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        threading.Thread(target=self.serve, args=(listener, tls, parent), daemon=True).start()
        return listener.getsockname()[1]

    def serve(self, listener, tls, parent):
        while True:
            stream = listener.accept()[0]
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.handle, args=(stream, tls, parent), daemon=True).start()

    def handle(self, stream, tls, parent):
        try:
            if tls:
                stream = tls.wrap_socket(stream, server_side=True)
        except OSError:
            return
        Connection(self, stream, parent).run()


def main():
    server = Server(*sys.argv[1:6])
    ports = [server.listen(), server.listen(server.tls)] + [server.listen(parent=name) for name in sys.argv[6:]]
    print("listening", *ports, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
