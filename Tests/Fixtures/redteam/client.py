# SPDX-License-Identifier: Apache-2.0
"""Clients that send what they are told, octet by octet, through the proxy."""

import base64
import select
import socket
import ssl
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Gone(Exception):
    """The proxy has closed the connection, or has not answered in time."""


class Client:
    """One connection to the proxy, with a token of the client token file."""

    def __init__(self, world, token="good", timeout=20):
        self.world, self.token = world, token
        self.peer = socket.create_connection(("127.0.0.1", world.port), timeout)
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    @property
    def authorization(self):
        return b"Proxy-Authorization: Basic " + base64.b64encode(
            b"x:" + self.world.tokens.get(self.token, self.token).encode()
        )

    def close(self):
        self.peer.close()

    def send(self, octets):
        try:
            self.peer.sendall(octets)
        except OSError as error:
            raise Gone from error

    def more(self):
        try:
            data = self.peer.recv(65536)
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        self.buffer += data

    def drain(self, seconds):
        """Everything that comes until the end, or for this long."""
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                if not getattr(self.peer, "pending", lambda: 0)() and not select.select([self.peer], [], [], left)[0]:
                    break
                self.more()
        except Gone:
            pass
        taken, self.buffer = self.buffer, b""
        return taken

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        head, _, self.buffer = self.buffer.partition(mark)
        return head + mark

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def response(self, has_body=True):
        """The octets of one response with its interim ones, and its status."""
        seen = b""
        while True:
            head = self.until(b"\r\n\r\n")
            seen += head
            status = int(head[9:12])
            if status >= 200 or status == 101:
                break
        lower = head.lower()
        if not has_body or status in (101, 204, 304):
            return seen, status
        if b"\ntransfer-encoding:" in lower:
            while True:
                line = self.until(b"\r\n")
                seen += line
                if not (size := int(line.split(b";")[0], 16)):
                    break
                seen += self.exactly(size + 2)
            while (line := self.until(b"\r\n")) != b"\r\n":
                seen += line
        elif b"\ncontent-length:" in lower:
            seen += self.exactly(int(lower.split(b"\ncontent-length:")[1].split(b"\r\n")[0]))
        else:
            seen += self.drain(5)
        return seen, status

    def exchange(self, octets, has_body=True):
        self.send(octets)
        try:
            return self.response(has_body)
        except Gone:
            seen, self.buffer = self.buffer, b""
            return seen, 0

    def connect(self, authority):
        """A CONNECT; the response's octets and status."""
        return self.exchange(
            b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n" + self.authorization + b"\r\n\r\n",
            has_body=False,
        )

    def start_tls(self, name, protocols=("http/1.1",)):
        context = ssl.create_default_context(cafile=self.world.anchor)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(list(protocols))
        try:
            self.peer = context.wrap_socket(self.peer, server_hostname=name)
        except OSError as error:
            raise Gone from error

    def tunnel(self, host, port, protocols=("http/1.1",)):
        seen, status = self.connect(f"{host}:{port}".encode())
        if status != 200:
            raise Gone(seen)
        self.start_tls(host, protocols)
        return self


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class TwoClient:
    """HTTP/2 in a tunnel. It sends any field, in any order."""

    def __init__(self, world, host, port, token="good"):
        self.client = Client(world, token).tunnel(host, port, ("h2",))
        if self.client.peer.selected_alpn_protocol() != "h2":
            self.client.close()
            raise Gone("the proxy does not look into this tunnel, and the origin speaks HTTP/1.1")
        self.client.send(PREFACE + frame(4, 0, 0))
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.encoder.header_table_size = 0
        self.stream = -1

    def close(self):
        self.client.close()

    def exchange(self, fields, body=None, trailers=None):
        """Everything that comes for one request, decoded, and the status."""
        self.stream += 2
        ends = body is None and trailers is None
        octets = frame(1, 4 | ends, self.stream, self.encoder.encode(fields, huffman=False))
        if body is not None:
            octets += frame(0, int(trailers is None), self.stream, body)
        if trailers is not None:
            octets += frame(1, 5, self.stream, self.encoder.encode(trailers, huffman=False))
        self.client.send(octets)
        return self.read(self.stream)

    def read(self, stream):
        seen, status = b"", 0
        try:
            while True:
                head = self.client.exactly(9)
                kind, flags, of = head[3], head[4], int.from_bytes(head[5:], "big")
                payload = self.client.exactly(int.from_bytes(head[:3], "big"))
                if kind == 1:
                    for name, value in self.decoder.decode(payload, raw=True):
                        seen += name + b": " + value + b"\n"
                        if name == b":status":
                            status = int(value)
                elif kind == 4 and not flags & 1:
                    self.client.send(frame(4, 1, 0))
                elif kind == 0:
                    seen += payload
                    if payload:
                        grown = len(payload).to_bytes(4, "big")
                        self.client.send(frame(8, 0, 0, grown) + frame(8, 0, of, grown))
                elif kind == 7:
                    return seen + payload[8:], -1
                if of == stream and (kind == 3 or kind in (0, 1) and flags & 1):
                    return seen, status if kind != 3 else status or -2
        except Gone:
            return seen, 0
