# SPDX-License-Identifier: Apache-2.0
"""Decides whether a request at the origin, or what a client has seen, is one that should not be."""

import base64
import re
import urllib.parse

import readings


def faults(run, record):
    """What is wrong with a request that the origin has got: kinds and sentences."""
    site = run.by_host.get(record.host)
    raw = opened(record)
    carried = [name for name, secret in run.world.secrets() if secret.encode() in raw]
    for name in carried:
        if name in run.world.tokens:
            yield "secret", f"the client's token {name} went to the origin"
        elif site is None or name != site.name or record.port != run.port(site) or record.tls != site.tls:
            yield "host", f"the secret of {name} went elsewhere"
    if site is None:
        return
    authenticated = site.name in carried or record.bound
    answered = authenticated or site.denies
    if answered and site.limits_paths and not permits(site, record):
        yield "paths" if site.denies else "inject", "a request that no line is for"
    if answered and "for=token" in site.line and record.values(b"x-who") != [b"good"]:
        yield "for", "a client that the line is not for"
    if authenticated and "for=exe" in site.line:
        yield "for", "a program that the line is not for"
    if authenticated and record.method.upper() in (b"TRACE", b"TRACK"):
        yield "trace", "a method with which the origin shows the request"
    if authenticated and (override := re.search(rb"(?i)x[-_](http[-_])?(original|rewrite|method)[^:]*: \S+", raw)):
        if site.limits_paths:
            yield "override", f"it has {override[0]!r}"
    if site.name in carried:
        yield from places(site, record, raw)
    if authenticated and "cross-site" in site.line and is_foreign(record):
        yield "pages", "a page of another origin gets an answer"


def permits(site, record):
    if site.methods and record.method not in site.methods:
        return False
    return readings.is_inside(record.target, site.ignores_case)


def places(site, record, raw):
    secret = site.secret.encode()
    where = {
        "authorization": b" ".join(plain_basic(v) for v in record.values(b"authorization")),
        "x-api-key": b" ".join(record.values(b"x-api-key")),
        "query": record.target.partition(b"?")[2],
    }.get(site.place) or b" ".join(record.values(b"cookie"))
    if raw.count(secret) != 1 or where.count(secret) != 1:
        yield "place", "the secret is not in its place only"


def is_foreign(record):
    attempted = record.values(b"x-attempt")
    return bool(attempted) and b"/in/page" in record.target


def plain_basic(value):
    """A value of Authorization with its Basic credentials decoded."""
    scheme, _, rest = value.partition(b" ")
    if scheme.lower() != b"basic":
        return value
    try:
        return base64.b64decode(rest)
    except ValueError:
        return value


def opened(record):
    raw = record.raw
    for value in record.values(b"authorization"):
        raw = raw.replace(value, plain_basic(value))
    return raw


def is_visible(secret, seen):
    """Whether half of a secret or more is in what a client has seen, as it is or in a usual encoding."""
    plain = secret.encode()
    length = max(12, len(plain) // 2)
    if b"kanarie" not in plain:
        return False
    tail = plain[plain.rindex(b"-") + 1 :]
    parts = [tail[i : i + 10] for i in range(0, len(tail) - 9)] or [plain[:length]]
    if any(part in seen for part in parts):
        return True
    texts = [tail.hex().encode(), urllib.parse.quote(tail, safe="").encode(), tail[::-1]]
    for shift in range(3):
        texts.append(base64.b64encode(bytes(shift) + tail)[4:-4])
    return any(text in seen for text in texts)
