# SPDX-License-Identifier: Apache-2.0
"""The checks of h2spec's part `generic`, and of RFC 9113 §3 to §5.5."""

from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from messages import data, priority
from peer import (
    ACK, CANCEL, COMPRESSION_ERROR, CONTINUATION, DATA, END_HEADERS, FRAME_SIZE_ERROR, GOAWAY, HAS_PRIORITY, HEADERS,
    PADDED, PING, PREFACE, PRIORITY, PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM, SETTINGS, STREAM_CLOSED,
    WINDOW_UPDATE, Failed, frame, literal, octets, settings,
)  # fmt: skip
from verdicts import acknowledged, both, closed, content, ends, pong, resets, served


def state_checks(at):
    yield from generic_streams(at)
    yield from generic_frames(at)
    yield from generic_compression(at)
    yield from formats(at)
    yield from stream_states(at)
    yield from identifiers(at)


def announced(peer):
    """The server's first frame is SETTINGS."""
    got = peer.read()
    if got is None or got.kind != SETTINGS or got.flags & ACK:
        raise Failed(f"first {got}")


def generic_streams(at):
    get, held = at.get(), settings((4, 0))
    opened = [settings((4, 0)), get, frame(WINDOW_UPDATE, 0, 1, octets(1))]
    yield "generic/1/1", "preface", False, [PREFACE + settings()], announced
    yield "generic/2/1", "idle: PRIORITY", True, [frame(PRIORITY, 0, 1, priority(weight=255))], pong
    yield "generic/2/2", "half-closed: WINDOW_UPDATE", True, opened, content(1)
    yield (
        "generic/2/3", "half-closed: PRIORITY", True,
        [held, get, frame(PRIORITY, 0, 1, priority()), frame(WINDOW_UPDATE, 0, 1, octets(1))], content(1),
    )  # fmt: skip
    yield "generic/2/4", "half-closed: RST_STREAM", True, [get, frame(RST_STREAM, 0, 1, octets(CANCEL))], pong
    yield "generic/2/5", "closed: PRIORITY", True, [get, served(1), frame(PRIORITY, 0, 1, priority())], pong


def generic_frames(at):
    get, post, block = at.get(), at.post(), at.block()
    yield "generic/3.1/1", "DATA", True, [post, data(b"test")], served(1)
    yield "generic/3.1/2", "two DATA", True, [post, data(b"test", ends=False), data(b"test")], served(1)
    padded = frame(DATA, PADDED | 1, 1, b"\6test" + bytes(6))
    yield "generic/3.1/3", "DATA with padding", True, [post, padded], served(1)
    yield "generic/3.2/1", "HEADERS", True, [get], served(1)
    padded = at.headers(b"\6" + block + bytes(6), flags=PADDED)
    yield "generic/3.2/2", "HEADERS with padding", True, [padded], served(1)
    first = at.headers(priority(weight=255) + block, flags=HAS_PRIORITY)
    yield "generic/3.2/3", "HEADERS with priority", True, [first], served(1)
    for number, (title, stream, payload) in enumerate(
        [
            ("weight 1", 1, priority(weight=0)),
            ("weight 256", 1, priority(weight=255)),
            ("a dependency", 3, priority(1, 0)),
            ("exclusive", 1, priority(0, 0, True)),
            ("of a later stream", 3, priority(weight=255)),
        ]
    ):
        frames = [frame(PRIORITY, 0, stream, payload), get]
        yield f"generic/3.3/{number + 1}", f"PRIORITY: {title}", True, frames, served(1)
    yield "generic/3.4/1", "RST_STREAM", True, [get, frame(RST_STREAM, 0, 1, octets(CANCEL))], pong
    yield "generic/3.5/1", "SETTINGS", True, [settings((3, 100))], acknowledged
    yield "generic/3.7/1", "PING", True, [], pong
    goaway = frame(GOAWAY, payload=octets(0) + octets(0))
    # What is open is completed, and then the connection ends (RFC 9113 §6.8).
    yield "generic/3.8/1", "GOAWAY", True, [get, goaway], both(served(1), closed)
    yield "generic/3.9/1", "WINDOW_UPDATE", True, [get, frame(WINDOW_UPDATE, 0, 0, octets(1))], served(1)
    yield "generic/3.9/2", "WINDOW_UPDATE of a stream", True, [get, frame(WINDOW_UPDATE, 0, 1, octets(1))], served(1)
    half = at.headers(block[:20], isWhole=False)
    rest = frame(CONTINUATION, END_HEADERS, 1, block[20:])
    yield "generic/3.10/1", "CONTINUATION", True, [half, rest], served(1)
    parts = [frame(CONTINUATION, 0, 1, block[20:40]), frame(CONTINUATION, END_HEADERS, 1, block[40:])]
    yield "generic/3.10/2", "two CONTINUATION", True, [half, *parts], served(1)
    yield "generic/4/1", "GET", True, [get], served(1)
    yield "generic/4/2", "HEAD", True, [at.headers(at.block(b"HEAD"))], both(served(1), pong)
    yield "generic/4/3", "POST", True, [post, data(b"test")], served(1)
    trailers = at.headers(literal(b"x-test", b"ok"))
    yield "generic/4/4", "POST with trailers", True, [post, data(b"test", ends=False), trailers], served(1)


def in_code(text):
    """A string in the Huffman code (RFC 7541 §5.2)."""
    encoded = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(text)
    return bytes([0x80 | len(encoded)]) + encoded


def generic_compression(at):
    """A field in each representation of RFC 7541 §6."""
    base, name, coded, huffman = at.block(), b"\x06x-test", in_code(b"x-test"), in_code(b"no")
    fields = [
        ("indexed", b"\x90"),
        ("indexing, indexed name", b"\x53\x02no"), ("the same, Huffman", b"\x53" + huffman),
        ("indexing, new name", b"\x40" + name + b"\x02no"), ("the same, Huffman", b"\x40" + coded + huffman),
        ("no indexing, indexed name", b"\x0f\x04\x02no"), ("the same, Huffman", b"\x0f\x04" + huffman),
        ("no indexing, new name", b"\x00" + name + b"\x02no"), ("the same, Huffman", b"\x00" + coded + huffman),
        ("never indexed, indexed name", b"\x1f\x04\x02no"), ("the same, Huffman", b"\x1f\x04" + huffman),
        ("never indexed, new name", b"\x10" + name + b"\x02no"), ("the same, Huffman", b"\x10" + coded + huffman),
    ]  # fmt: skip
    for number, (title, field) in enumerate(fields):
        yield f"generic/5/{number + 1}", f"field: {title}", True, [at.headers(base + field)], served(1)
    yield "generic/5/14", "table size", True, [at.headers(b"\x20" + base)], served(1)
    yield "generic/5/15", "two table sizes", True, [at.headers(b"\x20\x3f\x61" + base)], served(1)


def formats(at):
    get, block, post = at.get(), at.block(), at.post()
    half = at.headers(block, isWhole=False)
    yield "http2/3.5/1", "preface and request", False, [PREFACE + settings() + get], served(1)
    yield "http2/3.5/2", "no preface", False, [b"INVALID CONNECTION PREFACE\r\n\r\n"], closed
    yield "http2/4.1/1", "unknown type", True, [frame(0x16, 0, 0, bytes(8))], pong
    yield "http2/4.1/2", "unknown flags", True, [frame(PING, 0x16, 0, bytes(8))], pong
    yield "http2/4.1/3", "reserved bit", True, [frame(PING, 0, 1 << 31, bytes(8))], pong
    yield "http2/4.2/1", "DATA of 2^14", True, [post, data(bytes(1 << 14))], served(1)
    large = data(bytes((1 << 14) + 1))
    yield "http2/4.2/2", "DATA beyond 2^14", True, [post, large], resets(1, FRAME_SIZE_ERROR, orEnds=True)
    large = at.headers(block + literal(b"x", b"y" * 127) * 150)
    yield "http2/4.2/3", "HEADERS beyond 2^14", True, [large], ends(FRAME_SIZE_ERROR)
    yield "http2/4.3/1", "invalid block", True, [at.headers(b"\x40\x0a\x01")], ends(COMPRESSION_ERROR)
    yield "http2/4.3/2", "PRIORITY in a block", True, [half, frame(PRIORITY, 0, 1, priority())], ends(PROTOCOL_ERROR)
    yield "http2/4.3/3", "HEADERS of another in a block", True, [half, at.get(3)], ends(PROTOCOL_ERROR)


def stream_states(at):
    get, block, cancel = at.get(), at.block(), frame(RST_STREAM, 0, 1, octets(CANCEL))
    more = frame(CONTINUATION, END_HEADERS, 1, block)
    either = (STREAM_CLOSED, PROTOCOL_ERROR)
    frames = [
        ("idle: DATA", [data(b"test")], ends(PROTOCOL_ERROR)),
        ("idle: RST_STREAM", [cancel], ends(PROTOCOL_ERROR)),
        ("idle: WINDOW_UPDATE", [frame(WINDOW_UPDATE, 0, 1, octets(100))], ends(PROTOCOL_ERROR)),
        ("idle: CONTINUATION", [more], ends(PROTOCOL_ERROR)),
        ("half-closed: DATA", [get + data(b"test")], resets(1, STREAM_CLOSED, orEnds=True)),
        ("half-closed: HEADERS", [get + get], resets(1, STREAM_CLOSED, orEnds=True)),
        ("half-closed: CONTINUATION", [get + more], resets(1, *either, orEnds=True)),
        ("reset: DATA", [at.post() + cancel + data(b"test")], resets(1, STREAM_CLOSED, orEnds=True)),
        ("reset: HEADERS", [at.post() + cancel + get], resets(1, STREAM_CLOSED, orEnds=True)),
        ("reset: CONTINUATION", [at.post() + cancel + more], resets(1, *either, orEnds=True)),
        ("closed: DATA", [get, served(1), data(b"test")], ends(STREAM_CLOSED)),
        ("closed: HEADERS", [get, served(1), get], ends(STREAM_CLOSED)),
        ("closed: CONTINUATION", [get, served(1), more], ends(*either)),
    ]
    for number, (title, parts, verdict) in enumerate(frames):
        yield f"http2/5.1/{number + 1}", title, True, parts, verdict


def identifiers(at):
    yield "http2/5.1.1/1", "even identifier", True, [at.get(2)], ends(PROTOCOL_ERROR)
    yield "http2/5.1.1/2", "lower identifier", True, [at.get(5), at.get(3)], ends(PROTOCOL_ERROR)

    def beyond(peer):
        most = peer.announced[3]
        peer.send(settings((4, 0)), *(at.get(2 * number + 1) for number in range(most + 1)))
        resets(2 * most + 1, REFUSED_STREAM, PROTOCOL_ERROR)(peer)

    yield "http2/5.1.2/1", "more streams than permitted", True, [], beyond
    onItself = at.headers(priority(1, 255) + at.block(), flags=HAS_PRIORITY)
    yield "http2/5.3.1/1", "HEADERS that depend on themselves", True, [onItself], resets(1, PROTOCOL_ERROR, orEnds=True)
    onItself = frame(PRIORITY, 0, 2, priority(2))
    yield "http2/5.3.1/2", "PRIORITY that depends on itself", True, [onItself], resets(2, PROTOCOL_ERROR, orEnds=True)
    faulty = frame(PING, 0, 1, bytes(8))
    yield "http2/5.4.1/1", "an error ends the connection", True, [faulty], closed
    yield "http2/5.4.1/2", "after GOAWAY", True, [faulty], ends(PROTOCOL_ERROR)
    yield "http2/5.5/1", "unknown frame", True, [frame(0x16, 0, 0, bytes(8))], pong
    half = at.headers(at.block()[:20], isWhole=False)
    inside = [half, frame(0x16, 0, 0, bytes(8)), frame(CONTINUATION, END_HEADERS, 1, at.block()[20:])]
    yield "http2/5.5/2", "unknown frame in a block", True, inside, ends(PROTOCOL_ERROR)
