# SPDX-License-Identifier: Apache-2.0
"""Fields and frames of HTTP/2 that no client sends."""

import itertools

from attacks import Attempt
from client import Gone, TwoClient, frame


def two_attempts():
    for site, (name, change) in itertools.product(
        ("paths", "two-paths", "inject", "two-inject", "for", "header"), CHANGES
    ):
        yield Attempt("frames", site, "raw", raw=two_changed(change))
    for site, extra in itertools.product(("paths", "two-paths", "two-inject"), EXTRA):
        yield Attempt("frames", site, "two", fields=extra)
        yield Attempt("frames", site, "two", fields=extra, method=b"POST", body=b"a", trailers=extra)


CHANGES = (
    ("authority twice", lambda f: f + [(b":authority", b"other.test.localhost")]),
    ("path twice", lambda f: f + [(b":path", b"/in/admin/x")]),
    ("path first", lambda f: [(b":path", b"/in/admin/x")] + f),
    ("no authority", lambda f: [x for x in f if x[0] != b":authority"]),
    ("no path", lambda f: [x for x in f if x[0] != b":path"]),
    ("no scheme", lambda f: [x for x in f if x[0] != b":scheme"]),
    ("http", lambda f: [(n, b"http" if n == b":scheme" else v) for n, v in f]),
    ("method twice", lambda f: f + [(b":method", b"DELETE")]),
    ("HTTPS", lambda f: [(n, b"HTTPS" if n == b":scheme" else v) for n, v in f]),
    ("unknown", lambda f: f + [(b":x", b"y")]),
    ("late", lambda f: [(b"x-a", b"b")] + f),
    ("method line", lambda f: [(n, b"GET /out HTTP/1.1\r\nX: " if n == b":method" else v) for n, v in f]),
    ("path line", lambda f: [(n, b"/in/x HTTP/1.1\r\n\r\nGET /out" if n == b":path" else v) for n, v in f]),
    ("scheme line", lambda f: [(n, b"https://other/in/x?" if n == b":scheme" else v) for n, v in f]),
    ("absolute", lambda f: [(n, b"https://other.test.localhost/in/x" if n == b":path" else v) for n, v in f]),
    ("status", lambda f: f + [(b":status", b"200")]),
    ("empty path", lambda f: [(n, b"" if n == b":path" else v) for n, v in f]),
    ("user", lambda f: [(n, b"a@" + v if n == b":authority" else v) for n, v in f]),
    ("host", lambda f: f + [(b"host", b"other.test.localhost")]),
    ("hosts", lambda f: [x for x in f if x[0] != b":authority"] + [(b"host", b"other"), (b"host", f[2][1])]),
    ("star", lambda f: [(n, b"*" if n == b":path" else b"OPTIONS" if n == b":method" else v) for n, v in f]),
    ("space", lambda f: [(n, b" /in/admin/x" if n == b":path" else v) for n, v in f]),
    ("protocol", lambda f: f + [(b":protocol", b"websocket")]),
    ("upper", lambda f: f + [(b"X-Api-Key", b"own")]),
)
EXTRA = (
    ((b"connection", b"x-api-key"),),
    ((b"transfer-encoding", b"chunked"),),
    ((b"content-length", b"5"),),
    ((b"content-length", b"0"), (b"content-length", b"1")),
    ((b"x", b"a\r\nx-who: good"),),
    ((b"x\r\ny", b"a"),),
    ((b"x y", b"a"),),
    ((b"", b"a"),),
    ((b"x", b"a\x00b"),),
    ((b"te", b"gzip"),),
    ((b"upgrade", b"h2c"),),
    ((b"proxy-connection", b"x"),),
    ((b"keep-alive", b"x"),),
    ((b"x:y", b"a"),),
    ((b"x", b" a "),),
    ((b"http2-settings", b"AAMAAABkAAQAAP__"),),
    ((b"authorization", b"x\r\nHost: y"),),
    ((b"cookie", b"a=b"), (b"cookie", b"sid=own")),
    ((b":path", b"/out"),),
    ((b"expect", b"100-continue"),),
)


def two_changed(change):
    def attack(run, site):
        fields = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", run.authority(site)),
            (b":path", b"/in/x"),
        ]
        return run.two(site, change(fields) + [(b"x-who", b"good")])

    return attack


def odd_frames():
    """Frames that no client sends: the connection ends, or they are ignored."""
    for site, (kind, flags, stream, payload) in itertools.product(
        ("paths", "two-inject"),
        (
            (5, 4, 2, b"\0\0\0\1x"),
            (9, 4, 1, b"x"),
            (0, 1, 7, b"GET /out"),
            (2, 0, 1, b"\0\0\0\0\1"),
            (8, 0, 0, b"\x7f\xff\xff\xff"),
            (16, 0, 0, b"\0\0\0\1u=1"),
            (12, 0, 0, b"\0\x05https"),
            (1, 0x24, 1, b"\0\0\0\1\0\x82"),
            (4, 0, 0, b"\0\2\0\0\0\1"),
            (6, 0, 0, b"12345678"),
            (3, 0, 1, b"\0\0\0\0"),
            (250, 255, 1, b"x"),
        ),
    ):
        yield Attempt("frames", site, "raw", raw=odd(kind, flags, stream, payload))


def odd(kind, flags, stream, payload):
    def attack(run, site):
        client = TwoClient(run.world, site.host, run.port(site), "good")
        client.client.send(frame(kind, flags, stream, payload))
        fields = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", run.authority(site)),
            (b":path", b"/in/admin/x"),
        ]
        client.stream = 7
        try:
            return client.exchange(fields)[0]
        except Gone:
            return b""
        finally:
            client.close()

    return attack
