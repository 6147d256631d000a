# SPDX-License-Identifier: Apache-2.0
"""How servers that are not strict read the target of a request: every path that one of them may serve for it.

This is a reader of its own, with nothing of the proxy's. A request is inside a rule only if every reading is.
"""

import functools
import itertools
import re
import urllib.parse


def overlong(path):
    """Decodes UTF-8 as old servers do: overlong forms of ASCII become ASCII."""
    path = re.sub(rb"[\xc0\xc1][\x80-\xbf]", lambda m: bytes([(m[0][0] & 3) << 6 | m[0][1] & 63]), path)
    path = re.sub(rb"\xe0[\x80\x81][\x80-\xbf]", lambda m: bytes([(m[0][1] & 1) << 6 | m[0][2] & 63]), path)
    return re.sub(rb"\xf0\x80[\x80\x81][\x80-\xbf]", lambda m: bytes([(m[0][2] & 1) << 6 | m[0][3] & 63]), path)


def percent_u(path):
    """Decodes the %uXXXX of JavaScript's escape()."""
    return re.sub(rb"%[uU]00([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), path)


def resolved(path, counts_empty):
    """Without dot segments. `counts_empty`: `..` after an empty segment removes that."""
    kept = []
    for segment in path.split(b"/")[1:]:
        if segment == b"..":
            if kept:
                kept.pop()
        elif segment not in (b".",) and (segment or counts_empty):
            kept.append(segment)
    return b"/" + b"/".join(kept)


def cut(path, marks):
    for mark in marks:
        path = path.split(mark)[0]
    return path


def without_parameters(path):
    return re.sub(rb";[^/]*", b"", path)


@functools.lru_cache(maxsize=None)
def readings(target, ignores_case=False):
    """The paths, as tuples of segments, that servers may read in a target in origin-form."""
    found = set()
    path = target.split(b"?")[0]
    for early, decodings, slashes, late, counts_empty, network, dots in itertools.product(
        (False, True), (0, 1, 2), (False, True), (False, True), (False, True), (False, True), (False, True)
    ):
        text = path
        if network and text.startswith(b"//"):
            text = b"/" + text[2:].partition(b"/")[2]
        if early:
            text = without_parameters(text)
        if dots:
            text = resolved(text, counts_empty)
        for _ in range(decodings):
            text = overlong(urllib.parse.unquote_to_bytes(percent_u(text)))
        if decodings:
            text = cut(text, (b"\0", b"?", b"#"))
        if slashes:
            text = text.replace(b"\\", b"/")
        if late:
            text = without_parameters(text)
        if not decodings:
            # What is not decoded is compared as it is: a server that knows no encoding has no such resource.
            text = re.sub(
                rb"%([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]) if chr(int(m[1], 16)).isalnum() else m[0], text
            )
        segments = [s for s in resolved(text, counts_empty).split(b"/") if s]
        if ignores_case:
            segments = [s.lower().rstrip(b". ") for s in segments]
        elif not (early or late):
            # Another resource than the one without parameters is documented to need a line of its own.
            segments = [s.split(b";")[0] for s in segments]
        found.add(tuple(s for s in segments if s))
    return frozenset(found)


def is_inside(target, ignores_case=False):
    """Whether `paths=/in/**,!/in/admin/**` is for the target, however it is read."""
    if not target.startswith(b"/"):
        return False
    return all(r[:1] == (b"in",) and r[1:2] != (b"admin",) for r in readings(target, ignores_case))
