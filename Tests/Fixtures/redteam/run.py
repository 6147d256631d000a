# SPDX-License-Identifier: Apache-2.0
"""Sends attempts, and collects what is found."""

import collections
import concurrent.futures
import itertools
import os
import re
import socket
import sys
import threading
import time

import judge
from client import Client, Gone, TwoClient


class Run:
    """Sends attempts to one proxy, and judges what the origin has got and what the client has seen."""

    def __init__(self, world, origin, rules, log):
        self.world, self.origin, self.log = world, origin, log
        self.sites = {site.name: site for site in world.sites}
        self.rules = rules
        self.by_host = {site.host: site for site in rules}
        self.local = threading.local()
        self.attempts = 0
        self.violations = collections.defaultdict(list)
        self.numbers = itertools.count(1)
        self.names = {}
        self.lock = threading.Lock()

    # Sending

    def port(self, site):
        return self.origin.tls_port if site.tls else self.origin.plain_port

    def authority(self, site):
        return f"{site.host}:{self.port(site)}".encode()

    def client(self, token):
        return Client(self.world, token)

    def raw(self, target, site, token="good"):
        client = self.client(token)
        try:
            return client.exchange(
                b"GET "
                + target
                + b" HTTP/1.1\r\nHost: x\r\nX-Who: "
                + token.encode()
                + b"\r\n"
                + client.authorization
                + b"\r\n\r\n"
            )[0]
        finally:
            client.close()

    def two(self, site, fields, body=None):
        """A request over HTTP/2 by its fields, on the connection of earlier ones if that is still open."""
        key = ("two", site.name, "good")
        for _ in range(2):
            client = self.kept(key, lambda: TwoClient(self.world, site.host, self.port(site)))
            seen, status = client.exchange(fields, body)
            if status <= 0:
                self.forget(key)
            if status:
                break
        return seen

    def kept(self, key, make):
        """A connection of this thread that is used again until it ends."""
        kept = self.local.__dict__.setdefault("kept", {})
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def forget(self, key):
        if client := self.local.__dict__.get("kept", {}).pop(key, None):
            client.close()

    def control_socket(self, octets):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(0.3)
        seen = b""
        try:
            peer.connect(os.path.join(self.world.home, "run", "control.sock"))
            peer.sendall(octets)
            peer.shutdown(socket.SHUT_WR)
            while data := peer.recv(65536):
                seen += data
        except OSError:
            pass
        peer.close()
        return seen

    def send(self, attempt, number):
        """What the client has seen. A connection that has ended is opened again, once."""
        site = self.sites[attempt.site]
        if attempt.raw:
            try:
                return attempt.raw(self, site)
            except (Gone, UnicodeError):
                return b""
        key = (attempt.via, site.name, attempt.token)
        if attempt.via == "absolute":
            key = (attempt.via, attempt.token)
        for last in (False, True):
            try:
                seen, status = getattr(self, "send_" + attempt.via)(attempt, site, key, number)
            except Gone:
                seen, status = b"", 0
            except ValueError:
                return b""
            # After a 101, what follows goes to one origin as it is.
            has_ended = status <= 0 or status == 101 or b"\nconnection: close" in seen.lower()
            if has_ended or attempt.method in (b"HEAD", b"CONNECT"):
                self.forget(key)
            if status not in (0, -1) or last:
                return seen
        return b""

    def fields(self, attempt, number):
        return (*attempt.fields, (b"X-Who", attempt.token.encode()), (b"X-Attempt", b"%d" % number))

    def one(self, attempt, line, number, host, extra=b""):
        fields = list(self.fields(attempt, number))
        for name, value in fields:
            if name == b"Host" and value.startswith(b"!"):
                host = self.near(value, attempt)
        lines = b"".join(n + b": " + v + b"\r\n" for n, v in fields if not v.startswith(b"!"))
        body = attempt.body or b""
        if attempt.body is not None:
            lines += b"Content-Length: %d\r\n" % len(body)
        return (
            attempt.method + b" " + line + b" HTTP/1.1\r\nHost: " + host + b"\r\n" + lines + extra + b"\r\n" + body,
            attempt.method != b"HEAD",
        )

    def near(self, value, attempt):
        site = self.sites[attempt.site]
        return value[1:].decode().format(h=site.host, u=site.host.upper()).encode()

    def send_absolute(self, attempt, site, key, number):
        client = self.kept(key, lambda: self.client(attempt.token))
        line = (b"https" if site.tls else b"http") + b"://" + self.authority(site) + attempt.target
        return client.exchange(*self.one(attempt, line, number, self.authority(site), client.authorization + b"\r\n"))

    def send_tunnel(self, attempt, site, key, number):
        def opened():
            client = self.client(attempt.token)
            if site.tls:
                return client.tunnel(site.host, self.port(site))
            client.connect(self.authority(site))
            return client

        client = self.kept(key, opened)
        return client.exchange(*self.one(attempt, attempt.target, number, self.authority(site)))

    def send_two(self, attempt, site, key, number):
        if not site.tls:
            return self.send_tunnel(attempt, site, key, number)
        client = self.kept(key, lambda: TwoClient(self.world, site.host, self.port(site), attempt.token))
        authority = self.authority(site)
        fields = []
        for name, value in self.fields(attempt, number):
            if name == b":authority" and value.startswith(b"!"):
                authority = self.near(value, attempt)
            else:
                fields.append((name.lower(), value))
        pseudo = [
            (b":method", attempt.method),
            (b":scheme", b"https"),
            (b":authority", authority),
            (b":path", attempt.target),
        ]
        return client.exchange(pseudo + fields, attempt.body, list(attempt.trailers) or None)

    # Judging

    def run(self, all_attempts, workers=6):
        pending = list(all_attempts)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(self.attempt, pending, chunksize=16))
            pool.shutdown()
        time.sleep(0.1)
        self.judge_records()

    def attempt(self, attempt):
        number = next(self.numbers)
        self.names[number] = attempt
        begin = time.monotonic()
        seen = self.send(attempt, number)
        if self.log and time.monotonic() - begin > 1:
            print(f"slow: {time.monotonic() - begin:.1f} s {describe(attempt)}{seen[:60]}", file=sys.stderr)
        with self.lock:
            self.attempts += 1
        self.judge_client(attempt, seen)

    def found(self, kind, attempt, text):
        with self.lock:
            self.violations[kind].append((attempt, text))

    def judge_client(self, attempt, seen):
        for name, secret in self.world.secrets():
            if name != attempt.token and judge.is_visible(secret, seen):
                self.found(
                    (
                        "redact"
                        if name in self.sites and self.sites[name].redacts or name in ("header", "two-header")
                        else "secret"
                    ),
                    attempt,
                    f"the client sees the secret of {name}: {seen[:300]!r}",
                )
        sent = repr(attempt.target + b"".join(n + v for n, v in attempt.fields)).encode()
        for site in self.rules:
            if site.name != attempt.site.removeprefix("two-") and not attempt.raw:
                word = f"{site.host}".encode()
                if (
                    re.search(rb"(?<![\w-])" + word, seen)
                    and word not in sent
                    and site.name != self.sites[attempt.site].name
                ):
                    self.found("other", attempt, f"the client reads of {site.host}: {seen[:300]!r}")

    def judge_records(self):
        for record in self.origin.taken():
            numbers = record.values(b"x-attempt")
            attempt = self.names.get(int(numbers[0])) if numbers and numbers[0].isdigit() else None
            for kind, text in judge.faults(self, record):
                self.found(kind, attempt, f"{text}: {record.host}:{record.port} {record.raw[:300]!r}")


def describe(attempt):
    if attempt is None:
        return ""
    what = (
        f"{attempt.method!r} {attempt.target[:100]!r} {attempt.fields!r}"
        if not attempt.raw
        else attempt.raw.__qualname__
    )
    return f"[{attempt.group}, {attempt.site}, {attempt.via}, {attempt.token}: {what}] "
