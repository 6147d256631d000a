# SPDX-License-Identifier: Apache-2.0
"""Attempts of clients that a line is not for, beside and after those that it is for."""

import itertools

from attacks import Attempt, VIAS
from client import Gone


def client_attempts():
    """A client that the line is not for, alone and on a connection that a permitted one has used."""
    wrong = ("bad", "GOOD", "good ", "", "kanarie-token-good-", "x:y")
    for site, via in itertools.product(("for", "fordeny", "two-for", "two-fordeny", "plainfor"), VIAS):
        for target in (b"/in/x", b"/", b"/in/../x", b"/echo/body", b"/in/redirect/302"):
            yield Attempt("clients", site, via, target=target, token="bad")
        for token in wrong:
            yield Attempt("clients", site, via, token=token)
    for site, order, pipelined in itertools.product(
        ("for", "fordeny", "two-for", "two-fordeny", "plainfor", "ntlm"),
        ("good bad", "good bad good bad", "bad good bad"),
        (False, True),
    ):
        yield Attempt("clients", site, "raw", raw=changing(order.split(), pipelined))
    for site, count in itertools.product(("ntlm",), range(1, 41)):
        yield Attempt("ntlm", site, "raw", raw=stealing(count))
    for site, head in itertools.product(("for", "fordeny", "plainfor"), TWO_TOKENS):
        yield Attempt("clients", site, "raw", raw=two_tokens(head))
    for name in ("exe", "exe", "exe"):
        for via in VIAS:
            yield Attempt("clients", name, via, token="good")


def head(run, site, token, target=b"/in/x"):
    scheme = b"https" if site.tls else b"http"
    return (
        b"GET %s://%s:%d%s HTTP/1.1\r\nHost: x\r\nX-Who: %s\r\n"
        % (scheme, site.host.encode(), run.port(site), target, token.encode())
        + b"Proxy-Authorization: Bearer "
        + run.world.tokens.get(token, token).encode()
        + b"\r\n"
    )


def changing(order, pipelined):
    """One connection, whose token changes from request to request."""

    def attack(run, site):
        client = run.client("good")
        seen = b""
        try:
            heads = [head(run, site, token) + b"\r\n" for token in order]
            if pipelined:
                client.send(b"".join(heads))
            for each in heads:
                seen += client.response()[0] if pipelined else client.exchange(each)[0]
        except Gone:
            pass
        client.close()
        return seen

    return attack


def stealing(count):
    """Requests of another client beside and after those on a connection that NTLM has authenticated."""

    def attack(run, site):
        good, bad = run.client("good"), run.client("bad")
        seen = b""
        try:
            for number in range(1 + count % 4):
                good.send(head(run, site, "good") + b"\r\n")
                if number % 2 == count % 2:
                    seen += bad.exchange(head(run, site, "bad") + b"\r\n")[0]
                seen += good.response()[0]
            if count % 3 == 0:
                good.close()
            seen += bad.exchange(head(run, site, "bad", b"/in/%d" % count) + b"\r\n")[0]
            if count % 5 == 0:
                # The client's own handshake, at which another's connection must not be.
                own = b"Authorization: NTLM TlRMTVNTUAABAAAAB4IIogAAAAAAAAAAAAAAAAAAAAAKAGNFAAAADw==\r\n"
                seen += bad.exchange(head(run, site, "bad") + own + b"\r\n")[0]
        except Gone:
            pass
        good.close()
        bad.close()
        return seen

    return attack


TWO_TOKENS = (
    b"Proxy-Authorization: Bearer %(good)s",
    b"proxy-authorization: Basic eA==",
    b"Proxy-Authorization : Bearer %(bad)s",
    b"Authorization: Bearer %(bad)s",
    b"X-Client-Token: good",
    b"Proxy-Authorization: Bearer good",
    b"Proxy_Authorization: x",
)


def two_tokens(extra):
    """The wrong token, and beside it what some reader could take for the right one's name."""

    def attack(run, site):
        client = run.client("bad")
        names = {b"good": b"token:good", b"bad": run.world.tokens["bad"].encode()}
        try:
            return client.exchange(head(run, site, "bad") + extra % names + b"\r\n\r\n")[0]
        except Gone:
            return b""
        finally:
            client.close()

    return attack
