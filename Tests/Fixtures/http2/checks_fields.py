# SPDX-License-Identifier: Apache-2.0
"""The checks of RFC 9113 §8, which h2spec numbers as RFC 7540 does, and of RFC 7541."""

from messages import data
from peer import COMPRESSION_ERROR, END_HEADERS, PROTOCOL_ERROR, PUSH_PROMISE, block, frame, literal, octets
from verdicts import ends, resets


def fields_checks(at):
    malformed = resets(1, PROTOCOL_ERROR, orEnds=True)
    for section, checks in [
        ("8.1", [("HEADERS in the middle", [at.post(), at.headers(literal(b"x-test", b"ok"), ends=False)])]),
        ("8.1.2", [("uppercase name", [more(at, b"X-TEST", b"ok")])]),
        ("8.1.2.1", pseudo_fields(at)),
        ("8.1.2.2", [("connection", [more(at, b"connection", b"keep-alive")]), ("te", [more(at, b"te", b"gzip")])]),
        ("8.1.2.3", request_fields(at)),
        ("8.1.2.6", lengths(at)),
    ]:
        for number, (title, frames) in enumerate(checks):
            yield f"http2/{section}/{number + 1}", title, True, frames, malformed
    push = frame(PUSH_PROMISE, END_HEADERS, 1, octets(2) + at.block())
    yield "http2/8.2/1", "PUSH_PROMISE", True, [at.post(), push], ends(PROTOCOL_ERROR)
    yield from compression(at)


def more(at, name, value):
    return at.headers(at.block() + literal(name, value))


def pseudo_fields(at):
    yield "unknown pseudo-field", [at.headers(block([(b":test", b"ok")]) + at.block())]
    yield "pseudo-field of a response", [more(at, b":status", b"200")]
    yield "pseudo-field in trailers", [at.post(), data(b"test", ends=False), at.headers(literal(b":method", b"200"))]
    yield "pseudo-field after a field", [at.headers(literal(b"x-test", b"ok") + at.block())]


def request_fields(at):
    fields = at.fields()
    yield "empty :path", [at.headers(block(at.without(b":path") + [(b":path", b"")]))]
    for name in (b":method", b":scheme", b":path"):
        yield f"no {name.decode()}", [at.headers(block(at.without(name)))]
    for name in (b":method", b":scheme", b":path"):
        yield f"two {name.decode()}", [at.headers(block(fields + [(name, dict(fields)[name])]))]


def lengths(at):
    one = at.post(1, (b"content-length", b"1"))
    yield "length of 1 with DATA of 4", [one, data(b"test")]
    yield "length of 1 with two DATA of 4", [one, data(b"test", ends=False), data(b"test")]


def compression(at):
    base = at.block()
    for name, title, payload in [
        ("2.3.3/1", "index beyond the tables", base + b"\xff\x00"),
        ("2.3.3/2", "name beyond the tables", base + b"\x7f\x01\x01x"),
        ("4.2/1", "table size at the end", base + b"\x20"),
        ("5.2/1", "padding of 8 bits", base + b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff"),
        ("5.2/2", "padding with zeros", base + b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90"),
        ("5.2/3", "end-of-string symbol", base + b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\xff\xff\xff\xff"),
        ("6.1/1", "index 0", base + b"\x80"),
        ("6.3/1", "table size beyond the limit", b"\x3f\xe1\xff\x03" + base),
    ]:
        yield f"hpack/{name}", title, True, [at.headers(payload)], ends(COMPRESSION_ERROR)
