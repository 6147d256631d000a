# SPDX-License-Identifier: Apache-2.0
"""Attempts to lead a request, or its secret, to another host, and pages of other origins."""

import itertools

from attacks import GET, VIAS, Attempt
from world import PLACEHOLDER


def redirect_attempts():
    for status, via, site in itertools.product(
        (301, 302, 303, 307, 308), VIAS, ("basic", "two-basic", "page", "header", "for", "two-for")
    ):
        yield Attempt("redirects", site, via, target=b"/in/redirect/%d" % status)


def follow_attempts():
    """A client that follows the redirect with everything that it has, as a careless one does."""
    for status, site, fields in itertools.product(
        (301, 302, 307, 308),
        ("basic", "page", "header", "for", "bearer", "placed"),
        (
            b"",
            b"Authorization: Bearer " + PLACEHOLDER.encode() + b"\r\n",
            b"X-Api-Key: " + PLACEHOLDER.encode() + b"\r\n",
            b"Cookie: sid=" + PLACEHOLDER.encode() + b"\r\n",
        ),
    ):
        yield Attempt("redirects", site, "raw", raw=following(status, fields))


def following(status, fields):
    def attack(run, site):
        client = run.client("good")
        seen, own = b"", fields
        target = b"https://" + run.authority(site) + b"/in/redirect/%d?key=" % status + PLACEHOLDER.encode()
        try:
            for _ in range(2):
                seen, _ = client.exchange(
                    b"GET "
                    + target
                    + b" HTTP/1.1\r\nHost: x\r\nX-Who: good\r\n"
                    + client.authorization
                    + b"\r\n"
                    + own
                    + b"\r\n"
                )
                if b"ocation: " not in seen:
                    break
                own += b"Referer: " + target + b"\r\n"
                target = seen.split(b"ocation: ")[1].split(b"\r\n")[0] + b"?key=" + PLACEHOLDER.encode()
        finally:
            client.close()
        return seen

    return attack


PAGES = (
    ((b"Origin", b"https://evil.test.localhost"), (b"Sec-Fetch-Site", b"cross-site"), (b"Sec-Fetch-Mode", b"cors")),
    ((b"Origin", b"null"), (b"Sec-Fetch-Site", b"cross-site")),
    ((b"Referer", b"https://evil.test.localhost/a"),),
    ((b"Sec-Fetch-Site", b"cross-site"), (b"Sec-Fetch-Mode", b"no-cors"), (b"Sec-Fetch-Dest", b"image")),
    ((b"Sec-Fetch-Site", b"same-site"), (b"Origin", b"https://evil.test.localhost")),
    ((b"Sec-Fetch-Site", b"same-origin"), (b"Origin", b"https://evil.test.localhost")),
    ((b"Sec-Fetch-Site", b"none"), (b"Origin", b"https://evil.test.localhost")),
    ((b"Origin", b"https://app.test.localhost.evil"),),
    ((b"Origin", b"https://app.test.localhost"), (b"Origin", b"https://evil.test.localhost")),
    ((b"Sec-Purpose", b"prefetch"), (b"Sec-Fetch-Site", b"cross-site")),
    ((b"Origin", b"http://app.test.localhost"),),
    ((b"Origin", b"https://app.test.localhost:444"),),
    ((b"Sec-Fetch-Site", b"none"), (b"Sec-Fetch-Site", b"cross-site")),
    ((b"Origin", b"https://evilapp.test.localhost"),),
    ((b"Sec-Fetch-Site", b"CROSS-SITE"),),
    ((b"Sec-Fetch-Site", b"x"),),
    ((b"User-Agent", b"Mozilla/5.0"), (b"Referer", b"https://evil/")),
    ((b"Origin", b""),),
    ((b"Sec-Fetch-Site", b""),),
    ((b"Origin", b"https://app.test.localhost@evil.test.localhost"),),
)


def page_attempts():
    for fields, via, site, method in itertools.product(
        PAGES, VIAS, ("basic", "page", "two-basic", "two-page"), (b"GET", b"POST")
    ):
        yield Attempt(
            "pages", site, via, fields=fields, method=method, target=b"/in/page", body=b"" if method != GET else None
        )


NEAR = (
    "{h}.",
    "x.{h}",
    "{h}.other.test.localhost",
    "other.test.localhost",
    "127.0.0.1",
    "[::ffff:127.0.0.1]",
    "localhost",
    "x{h}",
    "{h}@other.test.localhost",
    "other.test.localhost@{h}",
    "{u}.",
    "{u}",
    "{h}%2e",
    "{h}%00",
    "{h}\\other",
    "2130706433",
    "0x7f.1",
    "127.1",
    "{h};x",
    "{h}#x",
    "{h}?x",
    "０.test.localhost",
    "xn--{h}",
    "-{h}",
    "_{h}",
    "{h}..",
    " {h}",
    "{h} ",
    "{h}\t",
    "[{h}]",
)


def host_attempts():
    """Names, ports and schemes that are nearly the site's; and two names for one request."""
    for near, site in itertools.product(NEAR, ("page", "inject", "paths", "for", "plain")):
        yield Attempt("hosts", site, "raw", raw=near_host(near))
        yield Attempt("hosts", site, "raw", raw=near_tunnel(near))
    for near, site in itertools.product(NEAR, ("page", "two-page", "paths", "basic")):
        for via in ("absolute", "tunnel"):
            yield Attempt("hosts", site, via, fields=((b"Host", b"!" + near.encode()),), target=b"/in/x")
        yield Attempt("hosts", site, "two", fields=((b":authority", b"!" + near.encode()),), target=b"/in/x")
        yield Attempt("hosts", site, "two", fields=((b"host", near.encode()),), target=b"/in/x")
    for site, scheme in itertools.product(
        ("page", "inject", "paths", "for"), (b"http", b"HTTP", b"ws", b"ftp", b"http\xc5\xbf", b"")
    ):
        yield Attempt("hosts", site, "raw", raw=other_scheme(scheme))
        yield Attempt("hosts", site, "raw", raw=other_port(scheme))


def mixed_attempts():
    """CONNECT, SNI, Host and the target name different listed sites."""
    for site, sni, host, target, protocol in itertools.product(
        ("page", "paths", "two-page"),
        (None, "paths", "other"),
        ("paths", "page", "inject"),
        (b"/in/admin/x", b"https://%s/in/admin/x"),
        ("http/1.1",),
    ):
        yield Attempt("hosts", site, "raw", raw=mixed(sni, host, target, protocol))


def mixed(sni, host, target, protocol):
    def attack(run, site):
        client = run.client("good")
        try:
            seen, status = client.connect(run.authority(site))
            if status != 200:
                return seen
            client.start_tls(f"{sni or site.name}.test.localhost", (protocol,))
            authority = f"{host}.test.localhost:{run.origin.tls_port}".encode()
            line = target % authority if b"%" in target else target
            return client.exchange(b"GET " + line + b" HTTP/1.1\r\nHost: " + authority + b"\r\nX-Who: good\r\n\r\n")[0]
        finally:
            client.close()

    return attack


def named(near, site):
    return near.format(h=site.host, u=site.host.upper())


def near_host(near):
    def attack(run, site):
        port = run.port(site)
        scheme = b"https://" if site.tls else b"http://"
        return run.raw(scheme + named(near, site).encode() + b":%d/in/out/x" % port, site)

    return attack


def near_tunnel(near):
    def attack(run, site):
        client = run.client("good")
        name = named(near, site)
        try:
            seen, status = client.connect(name.encode() + b":%d" % run.port(site))
            if status != 200:
                return seen
            if site.tls:
                client.start_tls(name)
            return client.exchange(b"GET /in/admin/x HTTP/1.1\r\nHost: %s\r\nX-Who: good\r\n\r\n" % name.encode())[0]
        finally:
            client.close()

    return attack


def other_scheme(scheme):
    def attack(run, site):
        return run.raw(scheme + b"://%s:%d/in/x" % (site.host.encode(), run.port(site)), site)

    return attack


def other_port(scheme):
    def attack(run, site):
        start = scheme + b"://" + site.host.encode()
        return (
            run.raw(start + b":%d/in/x" % run.origin.other_port, site)
            + run.raw(start + b":%d/in/x" % run.origin.plain_port, site)
            + run.raw(start + b"/in/x", site)
        )

    return attack
