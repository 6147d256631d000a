#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of gRPC call against test.Echo, through an HTTP CONNECT proxy or directly.

  grpc_client.py PROXY TARGET CAFILE [--via option|https_proxy|grpc_proxy|http_proxy] [--calls N] [--concurrency M]
                 [--items a,b,...] [--skip a,b,...] [--header name=value] [--prefix /fault/...] [--timeout S]
                 [--cert FILE --key FILE]

PROXY is http://[user:password@]host:port, or "-" for none. TARGET is host:port. --via says how grpcio learns of the
proxy: the channel option grpc.http_proxy (the default) or one of the environment variables.
--prefix goes before /test.Echo/METHOD, for the fault switches of http2_origin.py.
Prints one JSON object: "ok", "items" (name: true or false), "errors" (name: text), "seconds" (name: number), "load".
Exits 1 if an item is false. Every call has a time limit, so the script ends by itself.
"""
import argparse
import base64
import collections
import concurrent.futures
import json
import os
import queue
import sys
import time
import uuid

import grpc

MIB = 1 << 20
EVERY_BYTE = bytes(range(256))
VARIABLES = [name for base in ("https_proxy", "grpc_proxy", "http_proxy", "no_proxy", "no_grpc_proxy", "all_proxy")
             for name in (base, base.upper())]


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


class Client:
    def __init__(self, channel, options):
        self.channel, self.prefix, self.limit = channel, options.prefix, options.timeout
        self.fields = [tuple(field.split("=", 1)) for field in options.header]
        self.options, self.load = options, {}

    def path(self, method, prefix=None):
        return f"{self.prefix if prefix is None else prefix}/test.Echo/{method}"

    def metadata(self, *more):
        return [*self.fields, *more]

    def one(self, method, request, *metadata, timeout=None):
        return self.channel.unary_unary(self.path(method))(
            request, timeout=timeout or self.limit, metadata=self.metadata(*metadata))

    def stream(self, request, *metadata, timeout=None):
        return self.channel.unary_stream(self.path("ServerStream"))(
            json.dumps(request).encode(), timeout=timeout or self.limit, metadata=self.metadata(*metadata))

    def upload(self, messages, timeout=None):
        return json.loads(self.channel.stream_unary(self.path("ClientStream"))(
            iter(messages), timeout=timeout or self.limit, metadata=self.metadata()))

    def bidi(self, messages, *metadata):
        return self.channel.stream_stream(self.path("Bidi"))(
            iter(messages), timeout=self.limit, metadata=self.metadata(*metadata))

    def wait_seen(self, call, wanted, seconds=60):
        end, state = time.monotonic() + seconds, None
        seen = self.channel.unary_unary(self.path("Seen", prefix=""))
        while time.monotonic() < end:
            state = json.loads(seen(call.encode(), timeout=self.limit, metadata=self.metadata()))["state"]
            if state == wanted:
                return
            time.sleep(0.05)
        raise AssertionError(f"the server says {state}, not {wanted}")

    # Items: each raises if it fails.

    def item_unary(self):
        expect(self.one("Unary", b"hello") == b"hello", "not the echo")

    def item_unary_empty(self):
        expect(self.one("Unary", b"") == b"", "not the echo")

    def item_unary_1mib(self):
        body = os.urandom(MIB)
        expect(self.one("Unary", body) == body, "not the echo")

    def item_server_stream(self):
        got = list(self.stream({"count": 1000, "size": 100}))
        expect([int(m[:12]) for m in got] == list(range(1000)), f"{len(got)} messages, or out of order")

    def item_server_stream_slow(self):
        expect(len(list(self.stream({"count": 5, "interval": 0.2}))) == 5, "wrong count")

    def item_server_stream_1mib(self):
        got = list(self.stream({"count": 8, "size": MIB}))
        expect([len(m) for m in got] == [MIB] * 8, "wrong sizes")

    def item_client_stream(self):
        expect(self.upload([b"x" * 100] * 1000) == {"messages": 1000, "bytes": 100000}, "wrong count")

    def item_client_stream_empty(self):
        expect(self.upload([]) == {"messages": 0, "bytes": 0}, "wrong count")

    def item_client_stream_1mib(self):
        expect(self.upload([os.urandom(MIB)] * 8) == {"messages": 8, "bytes": 8 * MIB}, "wrong count")

    def item_client_stream_slow(self):
        def messages():
            for _ in range(4):
                yield b"tick"
                time.sleep(0.2)
        expect(self.upload(messages()) == {"messages": 4, "bytes": 16}, "wrong count")

    def item_bidi_ping_pong(self):
        """Sends a message only after the echo of the one before: shows that nothing is held back."""
        outgoing = queue.Queue()
        call = self.bidi(iter(outgoing.get, None))
        for number in range(50):
            outgoing.put(b"ping %d" % number)
            expect(next(call) == b"ping %d" % number, "not the echo")
        outgoing.put(None)
        expect(list(call) == [] and call.code() == grpc.StatusCode.OK, "did not end well")

    def item_bidi_bulk(self):
        messages = [os.urandom(64 << 10) for _ in range(64)]
        expect(list(self.bidi(messages)) == messages, "not the echo")

    def item_bidi_parallel(self):
        def run(number):
            messages = [b"%d %d" % (number, index) for index in range(50)]
            return list(self.bidi(messages)) == messages
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            expect(all(pool.map(run, range(20))), "not the echo")

    def refused(self, code, function):
        try:
            function()
        except grpc.RpcError as error:
            expect(error.code() == code, f"{error.code()}: {error.details()}")
            return error
        raise AssertionError(f"succeeded instead of {code}")

    def item_deadline(self):
        call = str(uuid.uuid4())
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: self.one(
            "Slow", b'{"seconds": 600}', ("x-call-id", call), timeout=3))
        self.wait_seen(call, "cancelled")

    def item_deadline_stream(self):
        call = str(uuid.uuid4())
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: list(self.stream(
            {"count": 5000, "interval": 0.2}, ("x-call-id", call), timeout=3)))
        self.wait_seen(call, "cancelled")

    def item_cancel(self):
        call = str(uuid.uuid4())
        future = self.channel.unary_unary(self.path("Slow")).future(
            b'{"seconds": 600}', timeout=self.limit, metadata=self.metadata(("x-call-id", call)))
        self.wait_seen(call, "active")
        future.cancel()
        expect(future.code() == grpc.StatusCode.CANCELLED, str(future.code()))
        self.wait_seen(call, "cancelled")

    def item_cancel_stream(self):
        call = str(uuid.uuid4())
        stream = self.stream({"count": 100, "interval": 0.1}, ("x-call-id", call))
        next(stream)
        stream.cancel()
        self.wait_seen(call, "cancelled")

    def item_cancel_bidi(self):
        call, outgoing = str(uuid.uuid4()), queue.Queue()
        stream = self.bidi(iter(outgoing.get, None), ("x-call-id", call))
        outgoing.put(b"one")
        expect(next(stream) == b"one", "not the echo")
        stream.cancel()
        outgoing.put(None)
        self.wait_seen(call, "cancelled")

    def item_metadata(self):
        sent = [("x-text", "plain text"), ("x-twice", "1"), ("x-twice", "2"), ("x-data-bin", EVERY_BYTE)]
        answer, call = self.channel.unary_unary(self.path("Metadata")).with_call(
            b"", timeout=self.limit, metadata=self.metadata(*sent))
        received = [(name, json.dumps(value)) for name, value in json.loads(answer)["received"]]
        for name, value in sent:
            wanted = value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}
            expect((name, json.dumps(wanted)) in received, f"{name} did not arrive: {received}")
        first, last = dict(call.initial_metadata()), dict(call.trailing_metadata())
        expect(first.get("x-initial") == "first" and first.get("x-initial-bin") == EVERY_BYTE, f"initial: {first}")
        expect(last.get("x-trailing") == "last" and last.get("x-trailing-bin") == b"\0\xff\0\xfe", f"trailing: {last}")

    def item_metadata_large(self):
        self.one("Unary", b"", *[(f"x-large-{index}", "v" * 1000) for index in range(6)])

    def item_fail_trailers_only(self):
        error = self.refused(grpc.StatusCode.FAILED_PRECONDITION, lambda: self.one(
            "Fail", json.dumps({"code": 9, "details": "nöt now: 100%"}).encode()))
        expect(error.details() == "nöt now: 100%", f"details: {error.details()!r}")

    def item_fail_unauthenticated(self):
        """The gRPC status 16, which is not HTTP status 401."""
        self.refused(grpc.StatusCode.UNAUTHENTICATED, lambda: self.one("Fail", b'{"code": 16, "details": "who?"}'))

    def item_unimplemented(self):
        self.refused(grpc.StatusCode.UNIMPLEMENTED, lambda: self.one("Nothing", b""))

    def item_load(self):
        calls, codes, took = self.options.calls, collections.Counter(), []
        unary = self.channel.unary_unary(self.path("Unary"))

        def run(number):
            body, start = b"call %d" % number, time.monotonic()
            try:
                code = "OK" if unary(body, timeout=60, metadata=self.metadata()) == body else "WRONG"
            except grpc.RpcError as error:
                code = error.code().name
            took.append(time.monotonic() - start)
            return code
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.concurrency) as pool:
            codes.update(pool.map(run, range(calls)))
        seconds = time.monotonic() - start
        took.sort()
        self.load = {"calls": calls, "concurrency": self.options.concurrency, "seconds": round(seconds, 3),
                     "per_second": round(calls / seconds), "codes": dict(codes),
                     "p50_ms": round(1000 * took[len(took) // 2], 2),
                     "p99_ms": round(1000 * took[len(took) * 99 // 100], 2),
                     "max_ms": round(1000 * took[-1], 2)}
        expect(codes == {"OK": calls}, f"codes: {dict(codes)}")


ITEMS = [name[5:] for name in vars(Client) if name.startswith("item_")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proxy")
    parser.add_argument("target")
    parser.add_argument("cafile")
    parser.add_argument("--via", choices=["option", "https_proxy", "grpc_proxy", "http_proxy"], default="option")
    parser.add_argument("--keep-environment", action="store_true", help="leave the proxy variables as they are")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--items", default=",".join(ITEMS), help="of: " + ",".join(ITEMS))
    parser.add_argument("--skip", default="")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--prefix", default="")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()

    if not options.keep_environment:
        for name in VARIABLES:
            os.environ.pop(name, None)
    arguments = [("grpc.use_local_subchannel_pool", 1)]
    if options.proxy == "-":
        arguments += [] if options.keep_environment else [("grpc.enable_http_proxy", 0)]
    elif options.via == "option":
        arguments.append(("grpc.http_proxy", options.proxy))
    else:
        os.environ[options.via] = options.proxy
    read = lambda path: open(path, "rb").read() if path else None
    credentials = grpc.ssl_channel_credentials(read(options.cafile), read(options.key), read(options.cert))

    items, errors, seconds = {}, {}, {}
    with grpc.secure_channel(options.target, credentials, arguments) as channel:
        client = Client(channel, options)
        for name in options.items.split(","):
            if name in options.skip.split(","):
                continue
            start = time.monotonic()
            try:
                getattr(client, "item_" + name)()
                items[name] = True
            except Exception as error:
                items[name] = False
                told = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.RpcError) else error
                errors[name] = f"{told}" or type(error).__name__
            seconds[name] = round(time.monotonic() - start, 3)
    good = all(items.values())
    print(json.dumps({"ok": good, "proxy": options.proxy, "via": options.via, "target": options.target,
                      "grpcio": grpc.__version__, "items": items, "errors": errors, "seconds": seconds,
                      "load": client.load}, indent=1, ensure_ascii=False))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
