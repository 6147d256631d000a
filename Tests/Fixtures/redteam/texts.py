# SPDX-License-Identifier: Apache-2.0
"""Text that should not get into the log or onto a terminal, the proxy's own page, and its control socket."""

import itertools

from attacks import VIAS, Attempt
from client import Gone

TEXT = (
    b"\x1b[2J\x1b[31mred",
    b'a\r\n{"time":"x"}',
    b"a\n",
    b'"},{"',
    b"\\u0000",
    b"\x00",
    b"\x7f",
    "‮".encode(),
    "\u200b".encode(),
    b"\xff\xfe",
    b"%0d%0a",
    b"a" * 20000,
    b"\x9b31m",
    b"${jndi:ldap://x}",
    b"%s%n",
    b"</script>",
    b"'",
    b"`id`",
    "\u2028".encode(),
    b"\x08\x08",
)


def text_attempts():
    for text, via, site in itertools.product(TEXT, VIAS, ("basic", "paths")):
        yield Attempt("text", site, via, fields=((b"User-Agent", text),))
        yield Attempt("text", site, via, target=b"/in/" + text)
        yield Attempt("text", site, via, method=text)
        yield Attempt("text", site, via, fields=((text, b"x"),))
    for text in TEXT:
        yield Attempt("text", "basic", "raw", raw=text_tunnel(text))


def text_tunnel(text):
    def attack(run, site):
        client = run.client("good")
        try:
            seen = client.connect(text + b".test.localhost:%d" % run.port(site))[0]
            return seen + client.connect(site.host.encode() + b":" + text)[0]
        except Gone:
            return b""
        finally:
            client.close()

    return attack


PAGE_PATHS = (
    b"/",
    b"/metrics",
    b"/state",
    b"/events",
    b"/healthz",
    b"/readyz",
    b"/session",
    b"/approve",
    b"/trust",
    b"/../vault",
    b"/vault.key",
    b"/..%2f..%2fvault",
    b"/home/vault",
    b"/debug/pprof",
    b"/.env",
    b"//",
    b"*",
)


def own_attempts():
    """The proxy's own page, as a client with the wrong token, under other names, and at the control socket itself."""
    for path, method, name in itertools.product(
        PAGE_PATHS,
        (b"GET", b"POST", b"PUT"),
        (b"countersign.localhost", b"COUNTERSIGN.localhost.", b"127.0.0.1", b"evil.test.localhost", b"localhost"),
    ):
        yield Attempt("own page", "basic", "raw", raw=own_page(path, method, name))
    for line in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /state HTTP/1.1\r\nHost: countersign.localhost\r\n\r\n",
        b"GET /metrics HTTP/1.0\r\n\r\n",
        b"{}\n",
        b'{"operation":"export"}\n',
        b"credential get basic\n",
        b"[]\n",
        b"\x00" * 64,
        b"\xff" * 5000 + b"\n",
        b'{"a":' * 5000 + b"\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"CONNECT basic.test.localhost:443 HTTP/1.1\r\n\r\n",
        b'{"command":"credentials"}\n',
        b'{"operation":"vault","read":true}\n',
        b"GET /events HTTP/1.1\r\n\r\n",
    ):
        for rest in (b"", line):
            yield Attempt("own page", "basic", "raw", raw=control(line + rest))


def own_page(path, method, name):
    def attack(run, _):
        client = run.client("bad")
        try:
            client.send(
                method
                + b" "
                + path
                + b" HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: 0\r\nCookie: session=x\r\nConnection: close\r\n\r\n"
                % (name, run.world.port)
            )
            seen = client.drain(0.3)
            client.close()
            client = run.client("bad")
            client.send(
                method
                + b" http://"
                + name
                + path
                + b" HTTP/1.1\r\nHost: x\r\n"
                + client.authorization
                + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return seen + client.drain(0.3)
        except Gone:
            return b""
        finally:
            client.close()

    return attack


def control(octets):
    def attack(run, _):
        return run.control_socket(octets)

    return attack
