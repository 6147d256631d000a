# SPDX-License-Identifier: Apache-2.0
"""The checks of RFC 9113 §6 and §7."""

from messages import data, priority
from peer import (
    ACK, CANCEL, CONTINUATION, DATA, END_HEADERS, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, GOAWAY, HEADERS, PADDED, PING,
    PRIORITY, PROTOCOL_ERROR, RST_STREAM, SETTINGS, STREAM_CLOSED, WINDOW_UPDATE, Failed, frame, octets, settings,
)  # fmt: skip
from verdicts import acknowledged, content, ends, pong, resets, served


def frame_checks(at):
    for section, checks in [
        ("6.1", of_data(at)),
        ("6.2", of_headers(at)),
        ("6.3", of_priority(at)),
        ("6.4", of_reset(at)),
        ("6.5", of_settings(at)),
        ("6.5.2", of_values(at)),
        ("6.5.3", of_synchronization(at)),
        ("6.7", of_ping(at)),
        ("6.8", [("GOAWAY on a stream", [frame(GOAWAY, 0, 1, bytes(8))], ends(PROTOCOL_ERROR))]),
        ("6.9", of_window_update(at)),
        ("6.9.1", of_windows(at)),
        ("6.9.2", of_initial_windows(at)),
        ("6.10", of_continuation(at)),
        ("7", of_codes(at)),
    ]:
        for number, (title, frames, verdict) in enumerate(checks):
            yield f"http2/{section}/{number + 1}", title, True, frames, verdict


def of_data(at):
    yield "DATA on stream 0", [data(b"test", 0)], ends(PROTOCOL_ERROR)
    yield "DATA on a closed stream", [at.get() + data(b"test")], resets(1, STREAM_CLOSED, orEnds=True)
    yield "padding beyond the frame", [at.post(), frame(DATA, PADDED | 1, 1, b"\6Test")], ends(PROTOCOL_ERROR)


def of_headers(at):
    half = at.headers(at.block(), isWhole=False)
    yield "PRIORITY in a block", [half, frame(PRIORITY, 0, 1, priority())], ends(PROTOCOL_ERROR)
    yield "HEADERS of another in a block", [half, at.get(3)], ends(PROTOCOL_ERROR)
    yield "HEADERS on stream 0", [at.get(0)], ends(PROTOCOL_ERROR)
    faulty = frame(HEADERS, PADDED | END_HEADERS | 1, 1, bytes([len(at.block()) + 1]) + at.block())
    yield "padding beyond the frame", [faulty], ends(PROTOCOL_ERROR)


def of_priority(at):
    yield "PRIORITY on stream 0", [frame(PRIORITY, 0, 0, priority())], ends(PROTOCOL_ERROR)
    short = frame(PRIORITY, 0, 1, bytes(4))
    yield "PRIORITY of 4 octets", [at.post(), short], resets(1, FRAME_SIZE_ERROR, orEnds=True)


def of_reset(at):
    yield "RST_STREAM on stream 0", [frame(RST_STREAM, 0, 0, octets(CANCEL))], ends(PROTOCOL_ERROR)
    yield "RST_STREAM on an idle stream", [frame(RST_STREAM, 0, 1, octets(CANCEL))], ends(PROTOCOL_ERROR)
    yield "RST_STREAM of 3 octets", [at.post(), frame(RST_STREAM, 0, 1, bytes(3))], ends(FRAME_SIZE_ERROR)


def of_settings(at):
    yield "acknowledgement with content", [frame(SETTINGS, ACK, 0, b"\0")], ends(FRAME_SIZE_ERROR)
    yield "SETTINGS on a stream", [frame(SETTINGS, 0, 1, octets(3, 2) + octets(100))], ends(PROTOCOL_ERROR)
    yield "SETTINGS of 3 octets", [frame(SETTINGS, 0, 0, bytes(3))], ends(FRAME_SIZE_ERROR)


def of_values(at):
    yield "ENABLE_PUSH of 2", [settings((2, 2))], ends(PROTOCOL_ERROR)
    yield "INITIAL_WINDOW_SIZE of 2^31", [settings((4, 1 << 31))], ends(FLOW_CONTROL_ERROR)
    yield "MAX_FRAME_SIZE of 2^14 - 1", [settings((5, (1 << 14) - 1))], ends(PROTOCOL_ERROR)
    yield "MAX_FRAME_SIZE of 2^24", [settings((5, 1 << 24))], ends(PROTOCOL_ERROR)
    yield "unknown setting", [settings((0xFF, 1))], pong


def of_synchronization(at):
    yield "a setting twice", [settings((4, 100), (4, 1)), at.get()], content(1)
    yield "acknowledged", [settings((4, 1))], acknowledged


def of_ping(at):
    yield "PING", [], pong

    def unanswered(peer):
        """Of two PING, the one that is an acknowledgement gets none."""
        peer.send(frame(PING, ACK, 0, b"answer--"), frame(PING, 0, 0, b"question"))
        for got in peer.frames():
            if got.kind == GOAWAY or got.kind == PING and got.payload != b"question":
                raise Failed(str(got))
            if got.kind == PING:
                return
        raise Failed("the connection ended")

    yield "an acknowledgement", [], unanswered
    yield "PING on a stream", [frame(PING, 0, 1, bytes(8))], ends(PROTOCOL_ERROR)
    yield "PING of 6 octets", [frame(PING, 0, 0, bytes(6))], ends(FRAME_SIZE_ERROR)


def of_window_update(at):
    yield "increment of 0", [frame(WINDOW_UPDATE, 0, 0, octets(0))], ends(PROTOCOL_ERROR)
    # It ends the stream only.
    yield "increment of 0 of a stream", [at.post(), frame(WINDOW_UPDATE, 0, 1, octets(0))], resets(1, PROTOCOL_ERROR)
    yield "WINDOW_UPDATE of 3 octets", [frame(WINDOW_UPDATE, 0, 0, bytes(3))], ends(FRAME_SIZE_ERROR)


def of_windows(at):
    most = (1 << 31) - 1
    yield "window of 1", [settings((4, 1)), at.get()], content(1)
    beyond = [frame(WINDOW_UPDATE, 0, 0, octets(most))] * 2
    yield "window beyond 2^31 - 1", beyond, ends(FLOW_CONTROL_ERROR)
    beyond = [at.post(), *[frame(WINDOW_UPDATE, 0, 1, octets(most))] * 2]
    yield "stream window beyond 2^31 - 1", beyond, resets(1, FLOW_CONTROL_ERROR)


def of_initial_windows(at):
    yield "window of 1 after the request", [settings((4, 0)), at.get(), settings((4, 1))], content(1)
    smaller = [settings((4, 3)), at.get(), part(3), settings((4, 2)), frame(WINDOW_UPDATE, 0, 1, octets(2))]
    yield "negative window", smaller, content(1)
    yield "window of 2^31", [settings((4, 1 << 31))], ends(FLOW_CONTROL_ERROR)


def part(size):
    """Waits for a DATA frame of this size."""

    def step(peer):
        for got in peer.frames():
            if got.kind == DATA:
                if len(got.payload) != size:
                    raise Failed(f"DATA of {len(got.payload)}")
                return
        raise Failed("the connection ended")

    return step


def of_continuation(at):
    half = at.headers(at.block()[:20], isWhole=False)
    rest, more = (frame(CONTINUATION, flags, 1, at.block()[20:]) for flags in (END_HEADERS, 0))
    yield "two CONTINUATION", [half, more, frame(CONTINUATION, END_HEADERS, 1)], served(1)
    yield "DATA after CONTINUATION", [half, more, data(b"test")], ends(PROTOCOL_ERROR)
    yield "CONTINUATION on stream 0", [half, frame(CONTINUATION, END_HEADERS, 0, b"")], ends(PROTOCOL_ERROR)
    extra = frame(CONTINUATION, END_HEADERS, 1, b"")
    yield "CONTINUATION after HEADERS that ended", [at.post() + extra], ends(PROTOCOL_ERROR)
    yield "CONTINUATION after one that ended", [half, rest, extra], ends(PROTOCOL_ERROR)
    yield "CONTINUATION after DATA", [at.post(), data(b"test", ends=False), extra], ends(PROTOCOL_ERROR)


def of_codes(at):
    # A connection that is ending may still be used for what it has.
    yield "GOAWAY with an unknown code", [at.get(), frame(GOAWAY, 0, 0, octets(0) + octets(0xFF))], served(1)
    yield "RST_STREAM with an unknown code", [at.get(), frame(RST_STREAM, 0, 1, octets(0xFF))], pong
