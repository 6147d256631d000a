# SPDX-License-Identifier: Apache-2.0
"""The origin: records each request as it came, and repeats it in as many ways as there are places in a response.

It speaks HTTP/1.1, and HTTP/2 to names that begin with `two-`. /in/echo/KIND and /echo/KIND choose the response.
"""

import base64
import dataclasses
import socket
import ssl
import threading

import h2.exceptions

from echoes import one_kinds, plain, ranged, secret_of
from origin_two import TwoConnection

TYPE2 = base64.b64encode(
    b"NTLMSSP\0\x02\0\0\0"
    + b"\0\0\0\0\x38\0\0\0"
    + (0xA2898205).to_bytes(4, "little")
    + b"12345678"
    + bytes(8)
    + b"\x10\0\x10\0\x38\0\0\0"
    + b"\x0a\0\x63\x45\0\0\0\x0f"
    + b"\x02\0\x08\0A\0C\0M\0E\0"
    + bytes(4)
).decode()


@dataclasses.dataclass
class Record:
    """A request: the name in SNI (or Host without TLS), the port, and everything that was sent."""

    host: str
    port: int
    tls: bool
    method: bytes
    target: bytes
    fields: list
    body: bytes = b""
    trailers: bytes = b""
    bound: bool = False  # on a connection that NTLM has authenticated

    def values(self, name):
        return [v for n, v in self.fields if n.lower() == name]

    @property
    def raw(self):
        lines = b"".join(n + b": " + v + b"\n" for n, v in self.fields)
        return self.method + b" " + self.target + b"\n" + lines + b"\n" + self.body + self.trailers


class Origin:
    def __init__(self, certificate, key, needs):
        """`needs` maps a host to the scheme that it demands: basic, ntlm."""
        self.records, self.lock, self.needs = [], threading.Lock(), needs
        self.context = self.tls_context(certificate, key, ["http/1.1"])
        two = self.tls_context(certificate, key, ["h2"])
        self.names = {}

        def choose(connection, name, _):
            connection.red_name = name or ""
            if (name or "").startswith("two-"):
                connection.context = two

        self.context.sni_callback = choose
        self.tls_port = self.listen(True)
        self.other_port = self.listen(True)
        self.plain_port = self.listen(False)

    @staticmethod
    def tls_context(certificate, key, protocols):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(protocols)
        return context

    def listen(self, tls):
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        port = listener.getsockname()[1]

        def accept():
            while True:
                peer, _ = listener.accept()
                threading.Thread(target=self.serve, args=(peer, port, tls), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return port

    def record(self, record):
        with self.lock:
            self.records.append(record)

    def challenge(self, record):
        """The challenge for a request that has not answered it."""
        need = self.needs.get(record.host.removeprefix("two-"))
        if need == "basic" and not any(v.lower().startswith(b"basic ") for v in record.values(b"authorization")):
            return 'Basic realm="red"'
        return None

    def taken(self):
        with self.lock:
            taken, self.records = self.records, []
        return taken

    def serve(self, peer, port, tls):
        try:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.settimeout(60)
            name = ""
            if tls:
                peer = self.context.wrap_socket(peer, server_side=True)
                name = getattr(peer, "red_name", "")
                if peer.selected_alpn_protocol() == "h2":
                    return TwoConnection(self, peer, name, port, Record).run()
            OneConnection(self, peer, name, port, tls).run()
        except (OSError, ValueError, EOFError, h2.exceptions.ProtocolError):
            pass
        finally:
            peer.close()


class OneConnection:
    def __init__(self, origin, peer, name, port, tls):
        self.origin, self.peer, self.name, self.port, self.tls = origin, peer, name, port, tls
        self.file = peer.makefile("rb")
        self.bound = False
        self.step = 0

    def send(self, *pieces):
        for piece in pieces:
            self.peer.sendall(piece)

    def run(self):
        while True:
            line = self.file.readline(1 << 17)
            if not line:
                return
            if not line.strip():
                continue
            method, _, rest = line.rstrip(b"\r\n").partition(b" ")
            target = rest.rpartition(b" ")[0]
            fields = self.fields()
            record = Record(self.name or self.host(fields), self.port, self.tls, method, target, fields)
            self.answer(record)

    def fields(self):
        fields = []
        while (line := self.file.readline(1 << 17)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.rstrip(b"\r\n").partition(b":")
            fields.append((name, value.strip()))
        return fields

    @staticmethod
    def host(fields):
        return next((v.decode("latin-1").split(":")[0] for n, v in fields if n.lower() == b"host"), "")

    def read_body(self, record):
        if any(b"chunked" in v.lower() for v in record.values(b"transfer-encoding")):
            while size := int(self.file.readline().split(b";")[0], 16):
                record.body += self.file.read(size)
                self.file.readline()
            record.trailers = b"".join(n + b": " + v + b"\n" for n, v in self.fields())
        elif lengths := record.values(b"content-length"):
            record.body = self.file.read(int(lengths[0]))

    def answer(self, record):
        if any(b"100-continue" in v for v in record.values(b"expect")):
            echo = b"".join(n + b"=" + v + b" " for n, v in record.fields) if self.echoes(record) else b""
            self.send(b"HTTP/1.1 100 Continue\r\nX-Echo: " + echo + b"\r\n\r\n")
        self.read_body(record)
        need = self.origin.needs.get(record.host.removeprefix("two-"))
        if need == "ntlm" and not self.bound:
            return self.shake_hands(record)
        record.bound = self.bound
        self.origin.record(record)
        if challenge := self.origin.challenge(record):
            return self.send(plain(401, b"who?", [("WWW-Authenticate", challenge)]))
        if record.values(b"upgrade"):
            return self.upgraded(record)
        respond(self, record)

    def shake_hands(self, record):
        sent = (record.values(b"authorization") or [b""])[0]
        token = base64.b64decode(sent[5:]) if sent.startswith(b"NTLM ") else b""
        if token[8:9] == b"\x03" and self.step == 1:
            self.bound = record.bound = True
            self.origin.record(record)
            return respond(self, record)
        self.step = 1 if token[8:9] == b"\x01" else 0
        record.fields = [f for f in record.fields if f[0].lower() != b"authorization"]
        self.origin.record(record)
        self.send(plain(401, b"", [("WWW-Authenticate", "NTLM " + TYPE2 if self.step else "NTLM")]))

    def upgraded(self, record):
        """Says yes to any protocol and goes on with HTTP, as a careless server does."""
        echo = record.raw.replace(b"\n", b" ") if self.echoes(record) else b""
        self.send(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: "
            + record.values(b"upgrade")[0]
            + b"\r\nX-Echo: "
            + echo
            + b"\r\n\r\n"
        )

    @staticmethod
    def echoes(record):
        """Other sites may show what they get only where an attempt asks for it."""
        return b"/echo/" in record.target


def respond(connection, record):
    kind = record.target.split(b"?")[0].rsplit(b"/", 1)[-1].decode("latin-1")
    echo = record.raw
    if record.method.upper() in (b"TRACE", b"TRACK"):
        return connection.send(plain(200, echo, [("Content-Type", "message/http")]))
    if b"/echo/" not in record.target and b"/redirect/" not in record.target:
        return connection.send(plain(200, b"", [("Connection", "close")] if kind == "bye" else []))
    if b"/redirect/" in record.target:
        where = f"https://other.test.localhost:{record.port}/{kind}"
        return connection.send(plain(int(kind) if kind.isdigit() else 302, b"", [("Location", where)]))
    secret = secret_of(record)
    span = ranged(record)
    if span:
        part = secret[span[0] : span[1] + 1]
        return connection.send(plain(206, part, [("Content-Range", f"bytes {span[0]}-{span[1]}/*")]))
    flat = b" ".join(line for line in echo.split(b"\n") if line)
    pieces = one_kinds(echo, flat, secret).get(kind) or [plain(200, echo)]
    if record.method == b"HEAD":
        pieces = [pieces[0].split(b"\r\n\r\n")[0] + b"\r\n\r\n"]
    connection.send(*pieces)
    if kind in (
        "close",
        "old",
        "short",
        "badline",
        "badfield",
        "badlength",
        "badcoding",
        "badchunk",
        "large",
        "beyond",
        "status",
    ):
        raise EOFError
