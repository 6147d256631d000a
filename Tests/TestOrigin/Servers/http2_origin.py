#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small HTTP/2 server over TLS that speaks enough gRPC for tests, asks for credentials, and misbehaves on request.

  http2_origin.py --cert FILE --key FILE --log FILE [--alpn h2,http/1.1] [--basic USER:PASSWORD] [--bearer TOKEN]
                  [--challenge early|early-rst|late] [--max-streams N] [--client-ca FILE] [--client-optional]
                  [--window BYTES] [--ask SCHEME] [--http1-to PORT]

Prints `listening PORT` on 127.0.0.1.

Credentials
  --basic, --bearer   without the right authorization field the answer is 401 as HEADERS with END_STREAM and
                      www-authenticate: Basic realm="x" (or Bearer realm="x"). Both may be given: two fields.
  --challenge         early: the 401 comes at once, while content may still be on its way (the default).
                      early-rst: the same, then RST_STREAM(NO_ERROR) if content is outstanding. late: after the content.
  --ask               every request over HTTP/2 gets a 401 with this scheme.
  --http1-to          connections over http/1.1 are passed on, decrypted, to this port of 127.0.0.1.
  --client-ca         asks for a TLS client certificate of this CA, and requires it unless --client-optional.
Connection
  --alpn              protocols offered, in order of preference. Over http/1.1 every request gets a simple 200 (or 401).
  --max-streams N     SETTINGS_MAX_CONCURRENT_STREAMS=N; a stream over it gets RST_STREAM(REFUSED_STREAM).
  --window BYTES      SETTINGS_INITIAL_WINDOW_SIZE, to make uploads wait.
gRPC (any path whose last two parts are these)
  test.Echo/Unary, ServerStream, ClientStream, Bidi, Fail, Slow, Metadata, and Seen: whether the call that x-call-id
  names was cancelled.
Plain HTTP
  /size/N  N bytes.   /echo  the content comes back.
  /fields  the path and the fields of the request as JSON, also over http/1.1, and x-api-key as a field.
  /cut/N   a 200 whose content ends with the first N octets of x-api-key; /part/N: a 206 that does, also over http/1.1.
  /bare    401 without a challenge unless there is an authorization field, also over http/1.1.
  Other paths: "ok". A path without these is fine for every fault below.
Faults: /fault/NAME/... is /... with the fault, after the check of credentials; /prefault/NAME/...: before it.
  refused/N      RST_STREAM(REFUSED_STREAM) for the first N requests to this path and query, then normal.
  reset/CODE     RST_STREAM(CODE) always; CODE is a number. reset-late/CODE: after HEADERS and some DATA.
  http11         RST_STREAM(HTTP_1_1_REQUIRED); over http/1.1 normal.
  goaway/N       The first N requests to this path on one connection are held. With the Nth comes GOAWAY(NO_ERROR) whose
                 last-stream-id excludes the later half (N=1: it excludes that one). Excluded ones get no answer, the
                 others do; the connection closes. Once per path and query; afterwards normal. Held for 1 s at most.
  goaway-all/N   The same, but the last-stream-id excludes none.
  drop           closes the TCP connection without a word.   drop-late  after HEADERS and some DATA.
  103            103 with a link field first.   100  100 first.
  early413       413 with a body once the first part of the content came, then RST_STREAM(NO_ERROR).
  long, short    content-length says 10 more (10 fewer) than the DATA has.
  uppercase, connection-field, transfer-encoding, no-status, bad-status, two-status, late-pseudo, newline, space-name,
  te-field       a malformed response head (te-field: only unusual), then a little DATA.
  bad-trailers   trailers with a pseudo field.   data-first  DATA before any HEADERS.
  settings/N     changes SETTINGS_MAX_CONCURRENT_STREAMS to N for this connection, then normal.
  slow/MS        waits before the answer.
Log: one JSON line per request ("event": "request") when both directions ended, and lines for connections.
"""
import argparse
import asyncio
import base64
import collections
import itertools
import json
import signal
import ssl
import struct
import time

import h2.connection  # which brings h2.config, errors, events, exceptions and settings
import hyperframe.frame

FAULT_ARGUMENTS = {"refused", "reset", "reset-late", "goaway", "goaway-all", "settings", "slow"}
OK_HEAD = [(":status", "200"), ("content-type", "text/plain")]
MALFORMED = {
    "uppercase": [*OK_HEAD, ("X-Upper", "1")],
    "connection-field": [*OK_HEAD, ("connection", "close")],
    "transfer-encoding": [*OK_HEAD, ("transfer-encoding", "chunked")],
    "no-status": OK_HEAD[1:],
    "bad-status": [(":status", "2x0"), *OK_HEAD[1:]],
    "two-status": [(":status", "200"), *OK_HEAD],
    "late-pseudo": [*OK_HEAD[1:], OK_HEAD[0]],
    "newline": [*OK_HEAD, ("x-split", "a\r\nx-injected: b")],
    "space-name": [*OK_HEAD, ("x space", "1")],
    "te-field": [*OK_HEAD, ("te", "trailers")],
}


class Gone(Exception):
    """The stream or its connection has ended."""


class Server:
    def __init__(self, options):
        self.options, self.seen, self.counts, self.numbers = options, {}, collections.Counter(), itertools.count(1)
        self.output = open(options.log, "a")

    def log(self, event, connection, **values):
        print(json.dumps({"event": event, "connection": connection, **values}), file=self.output, flush=True)

    def challenges(self, authorization, over_h2=False):
        """The fields to ask with, or none if the authorization will do."""
        wanted, fields = [], []
        if self.options.basic:
            wanted.append("Basic " + base64.b64encode(self.options.basic.encode()).decode())
            fields.append(("www-authenticate", 'Basic realm="x"'))
        if self.options.ask and over_h2:
            return [("www-authenticate", self.options.ask)]
        if self.options.bearer:
            wanted.append("Bearer " + self.options.bearer)
            fields.append(("www-authenticate", 'Bearer realm="x"'))
        return [] if authorization in wanted else fields

    async def accept(self, reader, writer):
        number, tls = next(self.numbers), writer.get_extra_info("ssl_object")
        subject = dict(pair for part in (tls.getpeercert() or {}).get("subject", ()) for pair in part)
        self.log("connected", number, alpn=tls.selected_alpn_protocol(), tls=tls.version(),
                 client=subject.get("commonName"))
        if tls.selected_alpn_protocol() != "h2" and self.options.http1_to:
            return await relay(reader, writer, self.options.http1_to)
        kind = H2Connection if tls.selected_alpn_protocol() == "h2" else H1Connection
        told = {}
        try:
            await kind(self, number, reader, writer).run(told)
        except (OSError, asyncio.IncompleteReadError, Gone) as error:
            told.setdefault("error", type(error).__name__)
        except h2.exceptions.ProtocolError as error:
            told["protocol_error"] = f"{type(error).__name__}: {error}"
        self.log("closed", number, **told)
        writer.close()


def described(path, fields):
    """The path and the fields of a request, as JSON."""
    return json.dumps({"path": path, "fields": [f"{name}: {value}" for name, value in fields]}).encode()


def repeated(path, fields):
    """The status, the content and the fields for a path that ends with a part of the key."""
    _, name, count = path.split("/")
    body = ("key: " + fields.get("x-api-key", "-")[:int(count)]).encode()
    return ("206", body, [("content-range", f"bytes 0-{len(body) - 1}/100")]) if name == "part" else ("200", body, [])


async def relay(reader, writer, port):
    """Passes a connection on, in both directions."""
    async def copy(source, target):
        try:
            while part := await source.read(1 << 16):
                target.write(part)
                await target.drain()
        except OSError:
            pass
        target.close()

    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(copy(reader, other_writer), copy(other_reader, writer))


class H1Connection:
    def __init__(self, server, number, reader, writer):
        self.server, self.number, self.reader, self.writer = server, number, reader, writer

    async def content(self, fields):
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return await self.reader.readexactly(int(fields.get("content-length", 0)))
        parts = []
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            parts.append((await self.reader.readexactly(size + 2))[:-2])
        while (await self.reader.readline()).strip():
            pass
        return b"".join(parts)

    async def run(self, told):
        while True:
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            if fields.get("expect"):
                self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await self.content(fields)
            asked = self.server.challenges(fields.get("authorization"))
            refused = asked or path.startswith("/bare") and "authorization" not in fields
            status, answer = ("401 Unauthorized", b"") if refused else ("200 OK", b"ok over http/1.1\n")
            if path.startswith("/fields"):
                answer = described(path, fields.items())
                asked = [("x-echo", fields.get("x-api-key", "-"))]
            elif path.startswith(("/cut/", "/part/")):
                status, answer, asked = repeated(path, fields)
                status += " OK"
            head = [f"HTTP/1.1 {status}", f"content-length: {len(answer)}", *(f"{n}: {v}" for n, v in asked)]
            self.writer.write("\r\n".join([*head, "", ""]).encode() + (b"" if method == "HEAD" else answer))
            await self.writer.drain()
            self.server.log("request", self.number, version="http/1.1", method=method, path=path,
                            authorized="authorization" in fields, te=fields.get("te"), bytes=len(body),
                            trailers=None, status=int(status[:3]), outcome="done")
            if fields.get("connection", "").lower() == "close":
                return


class H2Connection:
    def __init__(self, server, number, reader, writer):
        self.server, self.number, self.reader, self.writer = server, number, reader, writer
        self.streams, self.credit, self.excluded_above, self.held = {}, asyncio.Event(), None, {}
        self.most = server.options.max_streams
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="latin-1", validate_outbound_headers=False,
            normalize_outbound_headers=False, normalize_inbound_headers=False))

    def flush(self):
        self.writer.write(self.h2.data_to_send())

    async def run(self, told):
        wish = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.most or 100,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: self.server.options.window}
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=wish)
        self.h2.initiate_connection()
        # The limit is enforced below, with REFUSED_STREAM; the library would end the connection.
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            **wish, h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1 << 30})
        self.flush()
        try:
            while data := await self.reader.read(1 << 16):
                for event in self.h2.receive_data(data):
                    self.handle(event, told)
                self.flush()
                self.credit.set()
        finally:
            if not self.writer.is_closing():
                self.flush()
            for stream in list(self.streams.values()):
                stream.end("connection lost")

    def handle(self, event, told):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.RequestReceived):
            if self.excluded_above is not None and event.stream_id > self.excluded_above:
                return
            stream = Stream(self, event.stream_id, event.headers)
            if self.most and len(self.streams) >= self.most:
                self.streams[event.stream_id] = stream
                return stream.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
            self.streams[event.stream_id] = stream
            stream.task = asyncio.create_task(stream.run())
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if stream:
                stream.bytes += len(event.data)
                stream.content.put_nowait(event.data)
        elif isinstance(event, h2.events.TrailersReceived) and stream:
            stream.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded) and stream:
            stream.complete = True
            stream.content.put_nowait(None)
            stream.end_if_both()
        elif isinstance(event, h2.events.StreamReset) and stream:
            stream.end(f"reset by client {int(event.error_code)}")
        elif isinstance(event, h2.events.ConnectionTerminated):
            told["goaway"] = int(event.error_code)

    def goaway(self, last):
        """GOAWAY, after which the library would send nothing more: so the frame is made here."""
        self.flush()
        frame = hyperframe.frame.GoAwayFrame(0, last_stream_id=last, error_code=0)
        self.writer.write(frame.serialize())
        self.excluded_above = last
        self.server.log("goaway", self.number, last=last)
        for stream in list(self.streams.values()):
            if stream.id > last:
                stream.end("excluded by goaway")
        self.close_if_idle()

    def close_if_idle(self):
        if self.excluded_above is not None and not self.streams:
            self.flush()
            self.writer.close()


class Stream:
    def __init__(self, connection, id, headers):
        self.connection, self.server, self.id, self.task = connection, connection.server, id, None
        self.fields = {}
        for name, value in headers:
            self.fields[name] = f"{self.fields[name]}, {value}" if name in self.fields else value
        self.headers, self.path, self.call = headers, self.fields.get(":path", ""), self.fields.get("x-call-id", "")
        self.content, self.bytes, self.trailers, self.status = asyncio.Queue(), 0, None, None
        self.complete = self.answered = False

    def head(self, fields, end=False):
        if self.ended():
            raise Gone
        self.status = dict(fields).get(":status", self.status)
        self.connection.h2.send_headers(self.id, fields, end_stream=end)
        self.connection.flush()
        if end:
            self.answered = True
            self.end_if_both()

    async def data(self, data, end=False):
        view = memoryview(data)
        while True:
            if self.ended():
                raise Gone
            size = min(len(view), self.connection.h2.local_flow_control_window(self.id),
                       self.connection.h2.max_outbound_frame_size)
            if size <= 0 < len(view):
                self.connection.credit.clear()
                await self.connection.credit.wait()
                continue
            last = size == len(view)
            self.connection.h2.send_data(self.id, view[:size].tobytes(), end_stream=end and last)
            self.connection.flush()
            if last:
                break
            view = view[size:]
            await self.connection.writer.drain()
        if end:
            self.answered = True
            self.end_if_both()

    def reset(self, code):
        if not self.ended():
            self.connection.h2.reset_stream(self.id, code)
            self.connection.flush()
            self.end(f"reset by server {int(code)}")

    def ended(self):
        return self.id not in self.connection.streams

    def end_if_both(self):
        if self.answered and self.complete:
            self.end("done")

    def end(self, outcome):
        if self.connection.streams.pop(self.id, None) is None:
            return
        self.server.seen[self.call] = "done" if outcome == "done" else "cancelled"
        self.server.log("request", self.connection.number, version="h2", stream=self.id,
                        method=self.fields.get(":method"), path=self.path, authority=self.fields.get(":authority"),
                        authorized="authorization" in self.fields, te=self.fields.get("te"), bytes=self.bytes,
                        complete=self.complete, trailers=self.trailers,
                        status=int(self.status) if (self.status or "").isdigit() else None,
                        timeout=self.fields.get("grpc-timeout"), outcome=outcome)
        if self.task and outcome != "done" and self.task is not asyncio.current_task():
            self.task.cancel()
        self.connection.credit.set()
        self.connection.close_if_idle()

    async def run(self):
        self.server.seen[self.call] = "active"
        try:
            path, before, fault, argument = self.path.split("?")[0], False, None, None
            parts = path.split("/")
            if parts[1:2] in (["fault"], ["prefault"]) and len(parts) > 2:
                before, fault, rest = parts[1] == "prefault", parts[2], parts[3:]
                if fault in FAULT_ARGUMENTS:
                    argument, rest = int(rest[0]), rest[1:]
                path = "/" + "/".join(rest)
            if before and await self.fault(fault, argument, path):
                return
            if asked := self.challenges():
                return await self.challenge(asked)
            if path == "/bare" and "authorization" not in self.fields:
                return self.head([(":status", "401")], end=True)
            if not (fault and not before and await self.fault(fault, argument, path)):
                await self.answer(path)
        except (Gone, OSError, h2.exceptions.ProtocolError) as error:
            if not self.ended():
                self.end(f"lost: {type(error).__name__} {error}")

    def challenges(self):
        return self.server.challenges(self.fields.get("authorization"), over_h2=True)

    async def challenge(self, fields):
        if self.server.options.challenge == "late":
            await self.all_content()
        self.head([(":status", "401"), *fields], end=True)
        if self.server.options.challenge == "early-rst" and not self.complete:
            self.reset(h2.errors.ErrorCodes.NO_ERROR)

    async def all_content(self):
        parts = []
        while (part := await self.content.get()) is not None:
            parts.append(part)
        return b"".join(parts)

    async def fault(self, name, argument, path):
        """Misbehaves; answers whether the request is dealt with."""
        key = f"{self.path} {name}"
        if name == "refused":
            self.server.counts[key] += 1
            if self.server.counts[key] > argument:
                return False
            self.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
        elif name == "reset":
            self.reset(argument)
        elif name == "http11":
            self.reset(h2.errors.ErrorCodes.HTTP_1_1_REQUIRED)
        elif name in ("reset-late", "drop-late"):
            self.head(OK_HEAD)
            await self.data(b"some")
            await asyncio.sleep(0.1)
            self.reset(argument) if name == "reset-late" else self.connection.writer.transport.abort()
        elif name == "drop":
            self.connection.writer.transport.abort()
        elif name in ("goaway", "goaway-all"):
            return await self.hold(key, argument, name == "goaway-all")
        elif name in ("100", "103"):
            self.head([(":status", name)] + [("link", "</style.css>; rel=preload")] * (name == "103"))
            return False
        elif name == "early413":
            await self.content.get()
            self.head([(":status", "413"), ("content-length", "10")])
            await self.data(b"too large\n", end=True)
            if not self.complete:
                self.reset(h2.errors.ErrorCodes.NO_ERROR)
        elif name in ("long", "short"):
            self.head([*OK_HEAD, ("content-length", "30" if name == "long" else "10")])
            await self.data(b"x" * 20, end=True)
        elif name in MALFORMED:
            self.head(MALFORMED[name])
            await self.data(b"malformed\n", end=True)
        elif name == "bad-trailers":
            self.head(OK_HEAD)
            await self.data(b"ok\n")
            self.head([(":status", "200"), ("x-late", "1")], end=True)
        elif name == "data-first":
            frame = hyperframe.frame.DataFrame(self.id, data=b"early", flags=["END_STREAM"])
            self.connection.writer.write(frame.serialize())
        elif name == "settings":
            self.connection.most = argument
            frame = hyperframe.frame.SettingsFrame(0, settings={3: argument})
            self.connection.writer.write(frame.serialize())
            return False
        elif name == "slow":
            await asyncio.sleep(argument / 1000)
            return False
        else:
            self.head([(":status", "404"), ("x-error", "no such fault")], end=True)
        return True

    async def hold(self, key, wanted, all_included):
        if self.server.counts[key]:
            return False
        held = self.connection.held.setdefault(key, [])
        held.append(self.id)
        if len(held) == wanted:
            self.server.counts[key] = 1
            kept = held if all_included else held[:wanted // 2]
            asyncio.get_running_loop().call_soon(self.connection.goaway, max(kept, default=0))
            await asyncio.sleep(0.05)
            return self.ended()
        end = time.monotonic() + 1
        while not self.server.counts[key] and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return self.ended()

    async def answer(self, path):
        parts, more, status = path.split("/"), [], "200"
        if parts[-2:-1] == ["test.Echo"]:
            return await self.grpc(parts[-1])
        if parts[1] == "size":
            body = b"x" * int(parts[2])
        elif parts[1] == "echo":
            body = await self.all_content()
        elif parts[1].split("?")[0] == "fields":
            await self.all_content()
            body, more = described(self.path, self.headers), [("x-echo", self.fields.get("x-api-key", "-"))]
        elif parts[1] in ("cut", "part"):
            await self.all_content()
            status, body, more = repeated(path, self.fields)
        else:
            await self.all_content()
            body = b"ok\n"
        none = self.fields.get(":method") == "HEAD"
        self.head([(":status", status), *OK_HEAD[1:], *more, ("content-length", str(len(body)))], end=none)
        if not none:
            await self.data(body, end=True)

    async def messages(self):
        buffer = b""
        while (part := await self.content.get()) is not None:
            buffer += part
            while len(buffer) >= 5 and len(buffer) >= 5 + (size := struct.unpack(">I", buffer[1:5])[0]):
                yield buffer[5:5 + size]
                buffer = buffer[5 + size:]

    async def grpc(self, method):
        open_ = [(":status", "200"), ("content-type", "application/grpc")]
        status = lambda code, text="": [("grpc-status", str(code)), ("grpc-message", text)]
        send = lambda message: self.data(b"\0" + struct.pack(">I", len(message)) + message)
        trailers, answer = status(0), None
        if method == "Bidi":
            self.head(open_)
            async for message in self.messages():
                await send(message)
        elif method == "ClientStream":
            sizes = [len(message) async for message in self.messages()]
            answer = json.dumps({"messages": len(sizes), "bytes": sum(sizes)}).encode()
        else:
            request = b"".join([message async for message in self.messages()])
            if method == "ServerStream":
                wanted = json.loads(request or b"{}")
                self.head(open_)
                for number in range(wanted.get("count", 3)):
                    await asyncio.sleep(wanted.get("interval", 0) if number else 0)
                    await send(b"%012d" % number + b"x" * max(0, wanted.get("size", 12) - 12))
            elif method == "Fail":
                wanted = json.loads(request or b"{}")
                details = "".join(chr(byte) if 32 <= byte < 127 and byte != 37 else f"%{byte:02X}"
                                  for byte in wanted.get("details", "as asked").encode())
                return self.head(open_ + status(wanted.get("code", 9), details), end=True)
            elif method == "Slow":
                await asyncio.sleep(json.loads(request or b"{}").get("seconds", 1))
                answer = b"awake"
            elif method == "Seen":
                answer = json.dumps({"state": self.server.seen.get(request.decode(), "unknown")}).encode()
            elif method == "Metadata":
                pad = lambda value: value + "=" * (-len(value) % 4)
                answer = json.dumps({"received": [
                    [name, {"base64": pad(value)} if name.endswith("-bin") else value]
                    for name, value in self.headers if not name.startswith(":")]}).encode()
                open_ += [("x-initial", "first"), ("x-initial-bin", base64.b64encode(bytes(range(256))).decode())]
                trailers += [("x-trailing", "last"), ("x-trailing-bin", "AP8A/g")]
            elif method == "Unary":
                answer = request
            else:
                return self.head(open_ + status(12, "no such method"), end=True)
        if answer is not None:
            self.head(open_)
            await send(answer)
        self.head(trailers, end=True)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cert", "key", "log"):
        parser.add_argument("--" + name, required=True)
    for name in ("basic", "bearer", "client-ca", "ask"):
        parser.add_argument("--" + name)
    parser.add_argument("--alpn", default="h2")
    parser.add_argument("--http1-to", type=int)
    parser.add_argument("--challenge", choices=["early", "early-rst", "late"], default="early")
    parser.add_argument("--max-streams", type=int)
    parser.add_argument("--window", type=int, default=65535)
    parser.add_argument("--client-optional", action="store_true")
    options = parser.parse_args()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    context.set_alpn_protocols(options.alpn.split(","))
    if options.client_ca:
        context.load_verify_locations(options.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL if options.client_optional else ssl.CERT_REQUIRED
    server = await asyncio.start_server(Server(options).accept, "127.0.0.1", 0, ssl=context, backlog=256)
    print(f"listening {server.sockets[0].getsockname()[1]}", flush=True)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
