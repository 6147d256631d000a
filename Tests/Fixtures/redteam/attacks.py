# SPDX-License-Identifier: Apache-2.0
"""What a hostile program tries that knows the list. Each group yields attempts; none of them may have an effect."""

import dataclasses
import itertools
import typing

import echoes
from world import PLACEHOLDER

GET = b"GET"


@dataclasses.dataclass
class Attempt:
    """A request by method, target and fields; or `raw`, which gets the run and returns what the client has seen."""

    group: str
    site: str
    via: str = "absolute"  # tunnel, two, raw
    method: bytes = GET
    target: bytes = b"/in/x"
    fields: tuple = ()
    body: bytes | None = None
    trailers: tuple = ()
    token: str = "good"
    raw: typing.Callable | None = None


SEPARATORS = (
    b"/",
    b"//",
    b"///",
    b"/./",
    b"/x/../",
    b"/%2f",
    b"%2f",
    b"%2F",
    b"%5c",
    b"\\",
    b"/\\",
    b"/;/",
    b"/;a=b/",
    b";/",
    b"/.;/",
    b"/..;/",
    b"/x/..;/",
    b"%252f",
    b"%c0%af",
    b"%e0%80%af",
    b"%f0%80%80%af",
    b"%c1%9c",
    b"/%2e/",
    b"/x/%2e%2e/",
    b"/x/.%2e/",
    b"/x/%2e./",
    b"/x/%252e%252e/",
    b"/x/%c0%ae%c0%ae/",
    b"/%u002e/",
    b"%u002f",
    b"/x/..%00/",
    b"/x/..\\",
    b"/x//..//",
    b"/x/..//",
    b"/.//",
    b"/..//",
    b"/x/%2e%2e%2f",
    b"/x/..%5c",
    b"/x/..;a=b/",
    b"/%3b/",
    b"/%3bx/",
    b"/x/y/../../",
    b"/%00/",
    b"%00/",
    b"/%20/../",
    b"/x/.././",
    b"//../",
    b"/a;/../",
    b"/;/../",
)
WORDS = (
    b"admin",
    b"%61dmin",
    b"a%64min",
    b"%2561dmin",
    b"admin;x",
    b"admin;",
    b";admin",
    b"admin%00",
    b"admin%2e",
    b"%c1%a1dmin",
    b"%u0061dmin",
    b"ad\tmin",
    b"admin%3bx",
    b"admin%3fx",
    b"admin?x",
    b"admin#x",
    b"admin%23",
    b"admin%0a",
    b"admin\\x",
    b"ADMIN",
    b"Admin.",
    b"admin%20",
    b"aDmIn;v=1",
    b"%41DMIN",
    b"admin%",
    b"admin%2",
)


def paths():
    """Targets whose reading by some server lies outside of `paths=/in/**,!/in/admin/**`."""
    found = []
    for one, two in itertools.product(SEPARATORS, (b"/", b"//", b";/", b"%2f", b"\\", b"/./")):
        found.append(b"/in" + one + b"admin" + two + b"x")
    for separator in SEPARATORS:
        found += [
            separator + b"in/admin/x",
            separator + b"out/x",
            b"/in" + separator + b"../out/x",
            b"/in/.." + separator + b"out/x",
            b"/in/x/..%s../out" % separator,
            b"/out%s../in/x" % separator,
            b"/in/a%s..%s..%sout" % (separator, separator, separator),
            b"/in/admin%s../admin/x" % separator,
            b"/x/.." + separator + b"in/in/admin/x",
            b"/./" + separator + b"in/out",
            separator + b"in/in/admin",
        ]
    for word in WORDS:
        found += [
            b"/in/" + word + b"/x",
            b"/in/" + word,
            b"/in/./" + word + b"/",
            b"/%69n/" + word,
            b"/IN/" + word + b"/x",
            b"/in/y/../" + word + b"?/../../in",
        ]
    found += [
        b"*",
        b"",
        b"in/x",
        b"?in",
        b"/in",
        b"/",
        b"http://other.test.localhost/in/x",
        b"//other.test.localhost/in",
        b"/in/x HTTP/1.1\r\nX: y",
        b"/in/x\r\n",
        b"/in/x#/../../out",
        b"#/in",
        b"/out?/in/x",
        b"/out;/in/x",
        b"/out%3f/../in/x",
        b"/in%3f/../out",
        b"\\in\\x",
        b"/in/\xff/../../out",
        b"/in/" + b"a" * 9000 + b"/../admin",
    ]
    return list(dict.fromkeys(t if t.startswith(b"/") or t[:1] in b"*?i#h\\" else b"/" + t for t in found))


def path_attempts(every=1):
    for index, target in enumerate(paths()[::every]):
        for number, (site, via) in enumerate(
            (
                ("paths", "absolute"),
                ("inject", "tunnel"),
                ("fold", "two"),
                ("plain", "absolute"),
                ("two-paths", "two"),
                ("two-inject", "absolute"),
                ("two-fold", "tunnel"),
                ("paths", "two"),
                ("two-inject", "two"),
            )
        ):
            if number < 4 or (index + number) % 3 == 0:
                yield Attempt("paths", site, via, target=target)


METHODS = (
    b"POST",
    b"PUT",
    b"DELETE",
    b"PATCH",
    b"get",
    b"Get",
    b"gET",
    b"OPTIONS",
    b"TRACE",
    b"trace",
    b"Trace",
    b"TRACK",
    b"track",
    b"CONNECT",
    b"PROPFIND",
    b"GETX",
    b"GET,POST",
    b"HEADER",
    b"DEBUG",
    b"post",
    b"G\x00ET",
    b"GE T",
    b"GET\t",
    b"\tGET",
    b"MOVE",
    b"COPY",
    b"X",
    b"QUERY",
    b"PRI",
    b"M-SEARCH",
    b"LINK",
    b"LOCK",
    b"SEARCH",
    b"!#$%",
)
OVERRIDES = (
    b"X-HTTP-Method-Override",
    b"X-HTTP-Method",
    b"X-Method-Override",
    b"X-Original-Method",
    b"X_HTTP_METHOD_OVERRIDE",
    b"X-HTTP_Method-Override",
    b"x-http-method-override",
    b"X_Method_Override",
)
TARGET_FIELDS = (
    b"X-Original-URL",
    b"X-Rewrite-URL",
    b"X-Original-URI",
    b"X_Original_URL",
    b"X_REWRITE_URL",
    b"x-original-url",
    b"X_Original_URI",
)
VIAS = ("absolute", "tunnel", "two")


def finding_attempts():
    """What has succeeded once. These are always made."""
    for via, site in itertools.product(VIAS, ("paths", "inject", "two-inject", "fold", "plain")):
        for target in (b"/.//in/out", b"/x/..//in/in/admin/x", b"/.//./in/admin/x", b"/..//in/in/out"):
            yield Attempt("findings", site, via, target=target)
    for via, site, name in itertools.product(VIAS, ("paths", "two-inject"), OVERRIDES + TARGET_FIELDS):
        yield Attempt(
            "findings", site, via, fields=((name, b"/in/admin/x" if b"U" in name.upper()[-3:] else b"DELETE"),)
        )
    for via, site, method in itertools.product(
        VIAS, ("basic", "two-basic", "page"), (b"TRACE", b"trace", b"TRACK", b"Track")
    ):
        yield Attempt("findings", site, via, method=method)
    for via, site in itertools.product(VIAS, ("header", "query", "cookie", "two-header")):
        for name in (b"Range", b"Request-Range", b"request_range"):
            yield Attempt("findings", site, via, target=b"/echo/body", fields=((name, b"bytes=3-60"),))
        yield Attempt("findings", site, via, target=b"/echo/partial")


def method_attempts():
    for method, via, site in itertools.product(METHODS, VIAS, ("paths", "inject", "two-paths", "two-inject", "basic")):
        yield Attempt("methods", site, via, method=method, body=b"a" if method == b"POST" else None)
    for via, site in itertools.product(VIAS, ("paths", "inject", "two-inject")):
        for name in OVERRIDES:
            yield Attempt("overrides", site, via, fields=((name, b"DELETE"),))
        for name in TARGET_FIELDS:
            yield Attempt("overrides", site, via, fields=((name, b"/in/admin/x"),))
    for via, value in itertools.product(VIAS, (b"0", b"1", b"-1", b"00", b"x")):
        for method in (b"TRACE", b"OPTIONS", b"trace"):
            yield Attempt("methods", "basic", via, method=method, fields=((b"Max-Forwards", value),))


def echo_attempts():
    for kind, (place, via) in itertools.product(
        echoes.KINDS, itertools.product(("header", "query", "cookie", "two-header", "two-query", "bearer"), VIAS)
    ):
        yield Attempt("echoes", place, via, target=b"/echo/" + kind.encode())
    tricks = (
        ((b"Range", b"bytes=0-20"),),
        ((b"Request-Range", b"bytes=0-20"),),
        ((b"request-range", b"bytes=3-60"),),
        ((b"Range", b"bytes=0-20"), (b"If-Range", b'"a"')),
        ((b"Range", b"bytes=-18"),),
        ((b"RANGE", b"bytes=2-22"),),
        ((b"Accept-Encoding", b"gzip"),),
        ((b"TE", b"gzip, trailers"), (b"Connection", b"TE")),
        ((b"Connection", b"Accept-Encoding, X-Api-Key, Range"),),
        ((b"A-IM", b"gzip"),),
        ((b"Expect", b"100-continue"),),
        ((b"Accept-Charset", b"utf-16"),),
        ((b"If-None-Match", b"*"),),
        ((b"Upgrade", b"x"), (b"Connection", b"upgrade")),
        ((b"Content-Length", b"0"),),
        ((b"Accept-Encoding", b"gzip"), (b"Accept-Encoding", b"br")),
        ((b"Connection", b"Authorization"),),
        ((b"Connection", b"Cookie"),),
        ((b"Connection", b"close"),),
    )
    for fields, via, site in itertools.product(tricks, VIAS, ("header", "query", "cookie", "two-header", "two-bearer")):
        for kind in (b"gzip", b"body"):
            yield Attempt("echoes", site, via, target=b"/echo/" + kind, fields=fields)
    for via, method, site in itertools.product(
        VIAS, (b"HEAD", b"POST", b"OPTIONS", b"TRACE", b"trace", b"TRACK"), ("header", "two-header", "query")
    ):
        yield Attempt("echoes", site, via, method=method, target=b"/echo/body")


def placeholder_attempts():
    """The token belongs in its place only, and only in place of the whole placeholder."""
    hold = PLACEHOLDER.encode()
    fields = (
        ((b"X-Other", hold),),
        ((b"Authorization", b"Basic " + hold),),
        ((b"Authorization", hold), (b"Authorization", hold)),
        ((b"Authorization", b"Bearer " + hold), (b"X-Api-Key", hold)),
        ((b"Authorization", b"Bearer x" + hold),),
        ((b"Authorization", b"Bearer " + hold + b"x"),),
        ((b"Authorization", b"Bearer  " + hold),),
        ((b"Cookie", b"a=" + hold),),
        ((b"authorization", b"bEARER " + hold),),
        ((b"Proxy-Authorization", hold),),
        ((b"Referer", b"https://a/" + hold),),
        ((b"Authorization", b"Bearer own"),),
        ((b"Authorization", b""),),
        ((b"Host", hold),),
        ((hold, hold),),
        ((b"Authorization", b"Bearer " + hold), (b"Authorization", b"Bearer own")),
        ((b"X-Authorization", b"Bearer " + hold),),
        ((b"Authorization\x00", b"Bearer " + hold),),
        ((b"Authorization_", hold),),
        ((b"Connection", b"Authorization"),),
    )
    for value, via, site in itertools.product(fields, VIAS, ("bearer", "two-bearer")):
        yield Attempt("placeholder", site, via, fields=value, target=b"/in/" + hold, method=b"GET")
    queries = (
        b"key=%s",
        b"key=%s&key=%s",
        b"k%%65y=%s",
        b"key=own&k%%65y=%s",
        b"key=%s;key=own",
        b"other=%s",
        b"KEY=%s",
        b"key%%3d%s",
        b"key=%s#",
        b"key=%s%%00",
        b"key=%%6eo-key-needed",
        b"a=b;key=%s",
        b"key[]=%s",
        b"key=own",
        b"k%%2565y=%s",
        b"+key=%s",
        b"&&key=%s",
        b"key",
        b"key=",
        b"=key=%s",
        b"key=%s&other=%s",
        b"other=%s&key=%s",
        b"k%%C1%%A5y=%s",
        b"key=x%s",
        b"key=%sx",
    )
    for query, via, site in itertools.product(queries, VIAS, ("placed", "two-placed")):
        filled = query.replace(b"%s", hold).replace(b"%%", b"%")
        yield Attempt("placeholder", site, via, target=b"/in/" + hold + b"?" + filled)
        yield Attempt(
            "placeholder",
            site,
            via,
            method=b"POST",
            target=b"/in/x?" + filled,
            body=b"key=" + hold,
            trailers=((b"x-trailer", hold),) if via == "two" else (),
        )
