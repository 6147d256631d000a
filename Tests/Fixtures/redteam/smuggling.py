# SPDX-License-Identifier: Apache-2.0
"""Requests that hide another one, and connections that go on after an upgrade."""

import itertools

from attacks import Attempt
from client import Gone

HIDDEN = b"GET /in/admin/hidden HTTP/1.1\r\nHost: %(host)s\r\nX-Who: bad\r\n\r\n"
ENDS = (
    b"Content-Length: 0\r\nContent-Length: %(size)d\r\n\r\n",
    b"Content-Length: %(size)d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n",
    b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: identity\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
    b"Content-Length: +0\r\n\r\n",
    b"Content-Length: 0x0\r\n\r\n",
    b"Content-Length: 0,%(size)d\r\n\r\n",
    b"Content-Length: \r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: 99999999999999999999\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0;a=b\n\r\n",
    b"\n",
    b"X: y\n\n",
    b"\r\r",
    b"Transfer-Encoding: chunked\r\n\r\n00000000000000000\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n1\r\na0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\n\n",
    b"Transfer-Encoding: chunked\r\n\r\n2\r\na\r\n0\r\n\r\n",
    b"Expect: 100-continue\r\nContent-Length: %(size)d\r\n\r\n",
    b"Expect: x\r\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 0\r\n\r\n",
    b"Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n",
    b"Upgrade: h2c\r\nConnection: upgrade, http2-settings\r\n" b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    b"Upgrade: websocket, h2c\r\nConnection: upgrade\r\n\r\n",
    b"Upgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"Connection: Content-Length\r\nContent-Length: %(size)d\r\n\r\n",
    b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Trailer: Authorization\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: x\r\nContent-Length: 9\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Api-Key: x\r\nTransfer-Encoding: chunked\r\nHost: y\r\n\r\n",
    b"Connection: keep-alive, Host\r\n\r\n",
    b"Host: other.test.localhost\r\n\r\n",
    b": x\r\n\r\n",
    b"X\x00: y\r\n\r\n",
    b"X: y\x00\r\n\r\n",
)
METHODS = (b"GET", b"POST", b"HEAD", b"PUT")


def smuggling_attempts():
    for end, method, via, site in itertools.product(ENDS, METHODS, ("absolute", "tunnel"), ("paths", "two-inject")):
        yield Attempt("smuggling", site, "raw", raw=smuggling(end, method, via, b"HTTP/1.1"))
    for end in ENDS[:20]:
        for version in (b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1"):
            yield Attempt("smuggling", "inject", "raw", raw=smuggling(end, b"GET", "absolute", version))


def smuggling(end, method, via, version):
    """A permitted request, and behind a doubtful end another one."""

    def attack(run, site):
        hidden = HIDDEN % {b"host": site.host.encode()}
        end_ = end % {b"size": len(hidden)} if b"%(" in end else end
        client = run.client("bad")
        try:
            port = run.port(site)
            if via == "tunnel":
                client.tunnel(site.host, port)
                line = b"/in/x"
            else:
                line = b"https://%s:%d/in/x" % (site.host.encode(), port)
            extra = client.authorization + b"\r\n" if via == "absolute" else b""
            client.send(
                method + b" " + line + b" " + version + b"\r\nHost: %s\r\n" % site.host.encode() + extra + end_ + hidden
            )
            return client.drain(0.03)
        except Gone:
            return b""
        finally:
            client.close()

    return attack


def upgrade_attempts():
    """After a protocol is switched, the same connection carries more: it must be no authenticated or limited one."""
    for site, protocol, via in itertools.product(
        ("paths", "inject", "header", "two-paths", "ntlm", "page", "bearer"),
        (b"websocket", b"h2c", b"x", b"TLS/1.2", b"HTTP/2.0"),
        ("absolute", "tunnel"),
    ):
        yield Attempt("upgrades", site, "raw", raw=upgrading(protocol, via))
    for site, protocol, path in itertools.product(
        ("paths", "inject", "two-paths", "two-inject", "header"),
        (b"websocket", b"x", b"connect-udp", b"", None),
        (b"/in/x", b"/in/admin/x", b"/out"),
    ):
        yield Attempt("upgrades", site, "raw", raw=extended(protocol, path))


def upgrading(protocol, via):
    def attack(run, site):
        client = run.client("good")
        try:
            line, extra = b"https://%s:%d/in/x" % (site.host.encode(), run.port(site)), client.authorization + b"\r\n"
            if via == "tunnel":
                client.tunnel(site.host, run.port(site))
                line, extra = b"/in/x", b""
            client.send(
                b"GET "
                + line
                + b" HTTP/1.1\r\nHost: "
                + site.host.encode()
                + b"\r\n"
                + extra
                + b"X-Who: good\r\nConnection: upgrade\r\n"
                b"Upgrade: "
                + protocol
                + b"\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
            )
            return client.drain(0.05)
        except Gone:
            return b""
        finally:
            client.close()

    return attack


def extended(protocol, path):
    def attack(run, site):
        fields = [
            (b":method", b"CONNECT"),
            (b":scheme", b"https"),
            (b":authority", run.authority(site)),
            (b":path", path),
        ]
        if protocol is not None:
            fields.insert(1, (b":protocol", protocol))
        fields += [(b"sec-websocket-version", b"13"), (b"x-who", b"good")]
        return run.two(site, fields, body=b"" if protocol is None else None)

    return attack
