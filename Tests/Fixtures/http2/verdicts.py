# SPDX-License-Identifier: Apache-2.0
"""What the proxy must do. Each verdict reads from a peer until it is sure, and raises Failed otherwise."""

from peer import ACK, DATA, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, Failed, frame


def refused(got):
    if got.kind in (RST_STREAM, GOAWAY):
        raise Failed(f"refused: {got}")


def served(*streams):
    """Complete responses with 200, in any order."""

    def verdict(peer):
        left = set(streams)
        for got in peer.frames():
            refused(got)
            if got.kind in (HEADERS, DATA) and got.flags & END_STREAM:
                left.discard(got.stream)
            if not left:
                break
        else:
            raise Failed("the connection ended")
        if statuses := [peer.status.get(stream) for stream in streams if peer.status.get(stream) != 200]:
            raise Failed(f"status {statuses}")

    return verdict


def pong(peer):
    """The PING is answered, so the connection goes on."""
    peer.send(frame(PING, 0, 0, b"12345678"))
    for got in peer.frames():
        if got.kind == GOAWAY:
            raise Failed(f"refused: {got}")
        if got.kind == PING and got.flags & ACK and got.payload == b"12345678":
            return
    raise Failed("the connection ended")


def acknowledged(peer):
    for got in peer.frames():
        refused(got)
        if got.kind == SETTINGS and got.flags & ACK:
            return
    raise Failed("the connection ended")


def ends(*codes):
    """GOAWAY with one of the codes, and the end of the connection (RFC 9113 §5.4.1)."""

    def verdict(peer):
        seen = None
        for got in peer.frames():
            if got.kind == GOAWAY:
                seen = got.number(4)
        if seen not in codes:
            raise Failed(f"GOAWAY {seen}")

    return verdict


def resets(stream, *codes, orEnds=False):
    """RST_STREAM with one of the codes, and the connection goes on (RFC 9113 §5.4.2).

    With `orEnds`, the connection may end in its place: an endpoint may make an error of the connection of any error of
    a stream.
    """

    def verdict(peer):
        for got in peer.frames():
            if got.kind == RST_STREAM and got.stream == stream:
                if got.number() not in codes:
                    raise Failed(f"RST_STREAM {got.number()}")
                return pong(peer)
            if got.kind == GOAWAY:
                if not orEnds or got.number(4) not in codes:
                    raise Failed(f"GOAWAY {got.number(4)}")
                return ends(*codes)(Again(got, peer))
        raise Failed("the connection ended without a code")

    return verdict


class Again:
    """A peer whose last frame is read once more."""

    def __init__(self, got, peer):
        self.got, self.peer = got, peer

    def frames(self):
        yield self.got
        yield from self.peer.frames()


def content(*pieces, stream=1):
    """DATA frames of these sizes, and nothing behind them."""

    def verdict(peer):
        seen = []
        while seen != list(pieces):
            got = peer.read()
            if got is None:
                raise Failed("the connection ended")
            refused(got)
            if got.kind == DATA and got.stream == stream:
                seen.append(len(got.payload))
                if seen != list(pieces)[: len(seen)]:
                    raise Failed(f"DATA of {seen}")
        peer.send(frame(PING, 0, 0, b"12345678"))
        for got in peer.frames():
            if got.kind == DATA:
                raise Failed(f"DATA of {len(got.payload)} beyond the window")
            if got.kind == PING:
                return

    return verdict


def closed(peer):
    """The connection ends, whatever is said before."""
    for _ in peer.frames():
        pass


def both(*verdicts):
    def verdict(peer):
        for each in verdicts:
            each(peer)

    return verdict
