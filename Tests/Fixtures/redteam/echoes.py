# SPDX-License-Identifier: Apache-2.0
"""The ways in which a response can repeat a request: one for each place in it."""

import gzip


def plain(status, body, fields=(), reason=b"Said"):
    lines = b"".join(f"{n}: {v}\r\n".encode("latin-1") for n, v in fields)
    return b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, reason, len(body), lines, body)


def chunk(body):
    return b"%x\r\n%s\r\n" % (len(body), body)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
PLACES = (
    "X-Echo",
    "Set-Cookie",
    "Location",
    "ETag",
    "Content-Type",
    "Via",
    "Server",
    "Link",
    "Proxy-Status",
    "Content-Disposition",
    "Refresh",
    "Warning",
    "Alt-Svc",
    "Server-Timing",
    "Content-Location",
    "Age",
    "Authentication-Info",
    "Content-Range",
    "Vary",
    "P3P",
    "Access-Control-Allow-Origin",
    "Strange",
)


def one_kinds(echo, flat, named):
    """Kind to the pieces of an HTTP/1 response. `echo` is the request, `flat` without line feeds, `named` a token."""
    kinds = {
        "body": [plain(200, echo)],
        "twice": [plain(200, echo + echo)],
        "error": [plain(500, echo)],
        "missing": [plain(404, echo)],
        "bytes": [plain(200, echo)[i : i + 1] for i in range(len(plain(200, echo)))],
        "chunked": [CHUNKED + b"\r\n" + chunk(echo) + b"0\r\n\r\n"],
        "chunks": [CHUNKED + b"\r\n"] + [chunk(echo[i : i + 1]) for i in range(len(echo))] + [b"0\r\n\r\n"],
        "chunks7": [CHUNKED + b"\r\n"] + [chunk(echo[i : i + 7]) for i in range(0, len(echo), 7)] + [b"0\r\n\r\n"],
        "extension": [CHUNKED + b"\r\n3;" + named + b"=1\r\nabc\r\n0\r\n\r\n"],
        "trailer": [CHUNKED + b"Trailer: X-Echo\r\n\r\n3\r\nabc\r\n0\r\nX-Echo: " + flat + b"\r\n\r\n"],
        "trailername": [CHUNKED + b"\r\n3\r\nabc\r\n0\r\nX-" + named + b": 1\r\n\r\n"],
        "trailerafter": [CHUNKED + b"\r\n" + chunk(echo[:-5]) + b"0\r\nX-Echo: " + flat + b"\r\n\r\n"],
        "gzip": [plain(200, gzip.compress(echo), [("Content-Encoding", "gzip")])],
        "gzipte": [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunk(gzip.compress(echo)) + b"0\r\n\r\n"
        ],
        "reason": [plain(200, b"abc", reason=flat)],
        "name": [plain(200, b"abc", [("X-" + named.decode("latin-1"), "1")])],
        "folded": [b"HTTP/1.1 200 OK\r\nX-Echo: a\r\n " + flat + b"\r\nContent-Length: 3\r\n\r\nabc"],
        "early": [b"HTTP/1.1 103 Early Hints\r\nLink: <" + flat + b">\r\n\r\n" + plain(200, b"abc")],
        "processing": [b"HTTP/1.1 102 " + flat + b"\r\n\r\n" + plain(200, b"abc")],
        "close": [b"HTTP/1.1 200 OK\r\n\r\n" + echo],
        "old": [b"HTTP/1.0 200 OK\r\n\r\n" + echo],
        "short": [b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + echo],
        "badline": [b"HTTP/9.9 " + flat + b"\r\n\r\n"],
        "badfield": [b"HTTP/1.1 200 OK\r\n" + flat + b"\r\n\r\n"],
        "badlength": [b"HTTP/1.1 200 OK\r\nContent-Length: " + flat + b"\r\n\r\nabc"],
        "badcoding": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + named + b"\r\n\r\nabc"],
        "badchunk": [CHUNKED + b"\r\n" + named + b"\r\nabc"],
        "control": [b"HTTP/1.1 200 OK\r\nX-Echo: \x01" + flat + b"\r\nContent-Length: 3\r\n\r\nabc"],
        "large": [plain(200, b"abc", [("X-Echo", "x" * 300000 + flat.decode("latin-1"))])],
        "beyond": [plain(200, b"abc") + b"HTTP/1.1 200 OK\r\n\r\n" + echo],
        "status": [plain(999, echo)],
        "notmodified": [b'HTTP/1.1 304 Not Modified\r\nETag: "' + flat + b'"\r\n\r\n'],
        "none": [b"HTTP/1.1 204 No Content\r\nX-Echo: " + flat + b"\r\n\r\n"],
        "partial": [plain(206, echo, [("Content-Range", "bytes 0-1/2")])],
        "realm": [plain(401, echo, [("WWW-Authenticate", 'Basic realm="' + flat.decode("latin-1") + '"')])],
        "proxy": [plain(407, echo, [("Proxy-Authenticate", 'Basic realm="' + named.decode("latin-1") + '"')])],
        "expectation": [plain(417, echo)],
        "cut": [],
        "digest": [plain(200, echo, [("Content-Encoding", "identity"), ("Content-Encoding", "identity")])],
        "identity": [plain(200, echo, [("Content-Encoding", "identity")])],
        "unknown": [plain(200, gzip.compress(echo), [("Content-Encoding", "IDENTITY, gzip")])],
    }
    for place in PLACES:
        kinds["field-" + place.lower()] = [plain(200, b"abc", [(place, flat.decode("latin-1"))])]
    return kinds


KINDS = tuple(one_kinds(b"x", b"x", b"x"))


def secret_of(record):
    """What the client would like to see: the value with which the proxy has authenticated the request."""
    for name in (b"x-api-key", b"authorization", b"cookie"):
        for value in record.values(name):
            if b"kanarie" in value:
                return value.split(b"kanarie", 1)[1].split(b";")[0].join((b"kanarie", b""))
    if b"kanarie" in record.target:
        return b"kanarie" + record.target.split(b"kanarie", 1)[1].split(b"&")[0]
    return b"nothing"


def ranged(record):
    """As httpd does, also by the field of a draft of 1995 (`Request-Range`), and for any content."""
    for name in (b"range", b"request-range"):
        for value in record.values(name):
            first, _, last = value.decode().removeprefix("bytes=").partition("-")
            if first.isdigit():
                return int(first), int(last) if last.isdigit() else 1 << 20
    return None
