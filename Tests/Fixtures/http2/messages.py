# SPDX-License-Identifier: Apache-2.0
"""Requests to the site, as frames."""

from peer import DATA, END_HEADERS, END_STREAM, HEADERS, block, frame, octets


class Requests:
    def __init__(self, site, path):
        self.site, self.path = site.encode(), path.encode()

    def fields(self, method=b"GET", *more):
        return [
            (b":method", method), (b":scheme", b"https"), (b":authority", self.site), (b":path", self.path), *more,
        ]  # fmt: skip

    def without(self, name):
        return [(each, value) for each, value in self.fields() if each != name]

    def block(self, method=b"GET", *more):
        return block(self.fields(method, *more))

    def get(self, stream=1):
        return self.headers(self.block(), stream)

    def post(self, stream=1, *more):
        """A request whose content follows."""
        return self.headers(self.block(b"POST", *more), stream, ends=False)

    @staticmethod
    def headers(payload, stream=1, ends=True, isWhole=True, flags=0):
        return frame(HEADERS, flags | ends * END_STREAM | isWhole * END_HEADERS, stream, payload)


def data(content=b"", stream=1, ends=True):
    return frame(DATA, ends * END_STREAM, stream, content)


def priority(on=0, weight=15, isExclusive=False):
    return octets(on | isExclusive << 31) + bytes([weight])
