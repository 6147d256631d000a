# SPDX-License-Identifier: Apache-2.0
"""The connections of the origin that speak HTTP/2."""

import gzip

import h2.config
import h2.connection
import h2.events

from echoes import ranged, secret_of


class TwoConnection:
    def __init__(self, origin, peer, name, port, record):
        """`record` makes a record of a request."""
        self.origin, self.peer, self.name, self.port, self.record = origin, peer, name, port, record
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.open = {}

    def flush(self):
        self.peer.sendall(self.h2.data_to_send())

    def run(self):
        self.h2.initiate_connection()
        self.flush()
        while data := self.peer.recv(65536):
            for event in self.h2.receive_data(data):
                self.handle(event)
            self.flush()

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            fields = [(n, v) for n, v in event.headers]
            pseudo = {n: v for n, v in fields if n.startswith(b":")}
            self.open[event.stream_id] = self.record(
                self.name,
                self.port,
                True,
                pseudo.get(b":method", b""),
                pseudo.get(b":path", b""),
                [(n, v) for n, v in fields if n not in (b":method", b":path")],
            )
        elif isinstance(event, h2.events.DataReceived):
            self.open[event.stream_id].body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            self.open[event.stream_id].trailers = b"".join(n + b": " + v + b"\n" for n, v in event.headers)
        if isinstance(event, h2.events.StreamEnded):
            record = self.open.pop(event.stream_id)
            self.origin.record(record)
            self.answer(event.stream_id, record)
        elif isinstance(event, h2.events.StreamReset):
            self.open.pop(event.stream_id, None)

    def head(self, stream, status, fields=(), end=False):
        self.h2.send_headers(stream, [(b":status", b"%d" % status), *fields], end_stream=end)

    def answer(self, stream, record):
        kind = record.target.split(b"?")[0].rsplit(b"/", 1)[-1].decode("latin-1")
        if challenge := self.origin.challenge(record):
            return self.head(stream, 401, [(b"www-authenticate", challenge.encode())], end=True)
        if b"/redirect/" in record.target:
            where = f"https://other.test.localhost:{record.port}/{kind}".encode()
            return self.head(stream, int(kind) if kind.isdigit() else 302, [(b"location", where)], end=True)
        if b"/echo/" not in record.target:
            return self.head(stream, 200, end=True)
        secret, echo = secret_of(record), record.raw
        flat = b" ".join(line for line in echo.split(b"\n") if line)
        if span := ranged(record):
            echo, kind = secret[span[0] : span[1] + 1], "partial"
        status = {"error": 500, "missing": 404, "partial": 206, "realm": 401, "status": 999}.get(kind, 200)
        if record.method == b"HEAD":
            return self.head(stream, status, [(b"x-echo", flat)], end=True)
        if kind in ("early", "processing"):
            self.h2.send_headers(stream, [(b":status", b"103"), (b"link", b"<" + flat + b">")])
        if kind == "reason":
            self.head(stream, 200)
            self.flush()
            self.h2.close_connection(additional_data=echo)
            self.flush()
            raise EOFError
        if kind == "badline":
            return self.head(stream, 200, [(b"X Y " + flat, b"1")], end=True)
        if kind == "name":
            return self.head(stream, 200, [(b"x-" + secret, b"1")], end=True)
        if kind == "badlength":
            return self.head(stream, 200, [(b"content-length", flat)], end=True)
        fields = []
        if kind.startswith("field-"):
            fields, echo = [(kind[6:].encode(), flat)], b"abc"
        if kind == "gzip":
            fields, echo = [(b"content-encoding", b"gzip")], gzip.compress(echo)
        if kind == "realm":
            fields = [(b"www-authenticate", b'Basic realm="' + flat + b'"')]
        self.head(stream, status, fields)
        if kind == "badchunk":
            self.h2.reset_stream(stream)
            return None
        size = {"bytes": 1, "chunks": 1, "chunks7": 7}.get(kind, 16000)
        for start in range(0, len(echo), size):
            self.h2.send_data(stream, echo[start : start + size])
            if size == 1 and start % 16 == 0:
                self.flush()
        if kind in ("trailer", "trailerafter"):
            return self.h2.send_headers(stream, [(b"x-echo", flat)], end_stream=True)
        if kind == "trailername":
            return self.h2.send_headers(stream, [(b"x-" + secret, b"1")], end_stream=True)
        self.h2.end_stream(stream)
        return None
