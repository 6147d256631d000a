# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/2 inside the tunnel to an intercepted site. It sends any frame, valid or not."""

import socket
import ssl

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
NO_ERROR, PROTOCOL_ERROR, _, FLOW_CONTROL_ERROR, _, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = range(9)
COMPRESSION_ERROR = 9


class Failed(Exception):
    """The proxy did something else."""


def octets(number, count=4):
    return number.to_bytes(count, "big")


def frame(kind, flags=0, stream=0, payload=b""):
    """The octets of a frame (RFC 9113 §4.1). `stream` may have the reserved bit."""
    return octets(len(payload), 3) + bytes([kind, flags]) + octets(stream) + payload


def settings(*entries):
    return frame(SETTINGS, payload=b"".join(octets(name, 2) + octets(value) for name, value in entries))


def literal(name, value, first=0):
    """A field as a literal without Huffman code. `first` is 0x40 with indexing, 0x10 if never indexed."""
    return bytes([first, len(name)]) + name + bytes([len(value)]) + value


def block(fields):
    return b"".join(literal(name, value) for name, value in fields)


class Frame:
    def __init__(self, head, payload):
        self.kind, self.flags, self.stream = head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        self.payload = payload

    def number(self, start=0):
        return int.from_bytes(self.payload[start : start + 4], "big")

    def __str__(self):
        return f"{self.kind}/{self.flags:#x} on {self.stream} {self.payload[:24].hex()}"


class Peer:
    def __init__(self, proxy, anchor, site, seconds=30):
        host, port = proxy.rsplit(":", 1)
        raw = socket.create_connection((host, int(port)), seconds)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.sendall(f"CONNECT {site} HTTP/1.1\r\nHost: {site}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            if not (piece := raw.recv(1)):
                raise Failed(f"CONNECT: {answer}")
            answer += piece
        if b" 200" not in answer.split(b"\r\n")[0]:
            raise Failed(f"CONNECT: {answer}")
        context = ssl.create_default_context(cafile=anchor)
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(raw, server_hostname=site.rsplit(":", 1)[0])
        if self.socket.selected_alpn_protocol() != "h2":
            raise Failed("the proxy does not speak HTTP/2 in this tunnel")
        self.buffer, self.decoder, self.status, self.announced = b"", hpack.Decoder(), {}, {}

    def start(self):
        """The preface, and SETTINGS in both directions."""
        self.send(PREFACE, settings())
        seen = set()
        while seen != {0, ACK}:
            got = self.read()
            if got is None:
                raise Failed("the connection ended during the preface")
            if got.kind == SETTINGS:
                seen.add(got.flags)
        return self

    def send(self, *frames):
        try:
            self.socket.sendall(b"".join(frames))
        except OSError:
            pass  # The proxy has ended the connection, which reading shows.

    def read(self):
        """The next frame; None at the end of the connection. SETTINGS are acknowledged."""
        try:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
                if not (piece := self.socket.recv(65536)):
                    return None
                self.buffer += piece
        except socket.timeout as error:
            raise Failed("nothing came") from error
        except OSError:
            return None
        end = 9 + int.from_bytes(self.buffer[:3], "big")
        got, self.buffer = Frame(self.buffer[:9], self.buffer[9:end]), self.buffer[end:]
        if got.kind == SETTINGS and not got.flags & ACK:
            for start in range(0, len(got.payload), 6):
                self.announced[int.from_bytes(got.payload[start : start + 2], "big")] = got.number(start + 2)
            self.send(frame(SETTINGS, ACK))
        if got.kind == HEADERS:
            fields = self.decoder.decode(got.payload, raw=True)
            self.status[got.stream] = int(dict(fields).get(b":status", b"0"))
        return got

    def frames(self):
        while (got := self.read()) is not None:
            yield got

    def close(self):
        self.socket.close()
