# SPDX-License-Identifier: Apache-2.0
"""The scenarios: the load, the unit of the figure, and the goals relative to other proxies in the same run."""

from dataclasses import dataclass, field

HTTP_PORT, TLS_PORT, STORE_PORT, FIRST_PROXY_PORT = 19180, 19543, 19181, 19700
PARENT_PORT, QUICK_PARENT_PORT = 19182, 19183
HOSTS = 400
# As long as a JSON Web Token with a few claims.
BEARER_TOKEN = "0123456789abcdef" * 40
PLAIN = f"http://plain.bench.test:{HTTP_PORT}"
TUNNEL = f"https://tunnel.bench.test:{TLS_PORT}"
INTERCEPTED = f"https://mitm.bench.test:{TLS_PORT}"
KIB, MIB = "--expect-length 1024", "--expect-length 1048576"

REQUEST, GIGABYTE, LATENCY, MEMORY, START = "CPU µs/request", "CPU ms/GB", "p50 µs", "KiB/connection", "ms"


@dataclass(frozen=True)
class Bound:
    """At most `times` the figure of `peer` or of the scenario's `beside`; without either, at most `times`."""

    times: float
    peer: str = ""


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    needs: str
    load: str
    url: str
    unit: str
    seconds: float = 3
    bounds: list = field(default_factory=list)
    beside: "Scenario | None" = None  # measured alternately with the same proxy
    beside_is: str = "not answered"

    @property
    def is_fresh(self):
        """Whether it needs a newly started process."""
        return self.unit in (MEMORY, START) or self.name == "mitm-newhost"


INTERCEPTED_1K = Scenario(
    "mitm-1k", "intercepted 1 KiB, 32 kept connections", "mitm", f"-c 32 {KIB}", INTERCEPTED + "/1k", REQUEST,
    bounds=[Bound(0.38, "squid"), Bound(1.6, "haproxy")])


def answered(name, site):
    return Scenario(
        f"mitm-{name}", f"the same, {site} answered", "answers", f"-c 32 {KIB}",
        f"https://{name}.bench.test:{TLS_PORT}/1k", REQUEST, bounds=[Bound(1.1)], beside=INTERCEPTED_1K)


PLAIN_1K = Scenario(
    "plain-1k", "plain 1 KiB, 32 kept connections", "plain", f"-c 32 {KIB}", PLAIN + "/1k", REQUEST,
    bounds=[Bound(0.25, "squid"), Bound(1.4, "haproxy")])


def through_parent(scheme, title, other):
    """Through squid, which is slow, so that the proxy under test often wakes up for a single response."""
    return Scenario(
        f"parent-{scheme}", f"plain 1 KiB through squid, which demands {title}", "parent", f"-c 32 {KIB}",
        f"http://parent.bench.test:{HTTP_PORT}/1k", REQUEST,
        bounds=[Bound(0.2, f"px-parent-{scheme}"), Bound(1, other)])


SCENARIOS = [
    PLAIN_1K,
    INTERCEPTED_1K,
    answered("basic", "a Basic site"),
    answered("bearer", "a Bearer site"),
    answered("digest", "a Digest site"),
    answered("ntlm", "an NTLM site"),
    answered("cert", "a client-certificate site"),
    Scenario("mitm-handshake", "intercepted, one connection per request", "mitm", f"-c 8 --close {KIB}",
             INTERCEPTED + "/1k", REQUEST, bounds=[Bound(0.22, "squid"), Bound(1.3, "envoy")]),
    Scenario("mitm-newhost", "intercepted, a new host per request, one wildcard certificate", "newhost",
             f"-c 4 --close -w 0 -n {HOSTS - 20} --hosts {HOSTS} {KIB}", f"https://h%.mitm.bench.test:{TLS_PORT}/1k",
             REQUEST, 8, bounds=[Bound(0.42, "squid")]),
    Scenario("mitm-1M", "intercepted 1 MiB bodies down", "mitm", f"-c 8 {MIB}", INTERCEPTED + "/1m", GIGABYTE,
             bounds=[Bound(1.05, "envoy")]),
    Scenario("mitm-up-1M", "intercepted 1 MiB bodies up", "mitm", "-c 4 --upload 1048576", INTERCEPTED + "/sink",
             GIGABYTE, bounds=[Bound(1.05, "envoy")]),
    Scenario("tunnel-100M", "tunnel 100 MiB", "tunnel", "-c 2 --expect-length 104857600", TUNNEL + "/100m", GIGABYTE,
             bounds=[Bound(0.8, "squid")]),
    through_parent("basic", "Basic", "tinyproxy-parent-basic"),
    through_parent("ntlm", "NTLM", "cntlm"),
    Scenario("parent-quick", "plain 1 KiB through a parent as fast as the origin", "parent", f"-c 32 {KIB}",
             f"http://parent.bench.test:{HTTP_PORT}/1k", REQUEST, bounds=[Bound(1.15)], beside=PLAIN_1K,
             beside_is="direct"),
    Scenario("parent-mitm", "intercepted 1 KiB through squid's tunnel", "parent-mitm", f"-c 32 {KIB}",
             f"https://parent.bench.test:{TLS_PORT}/1k", REQUEST, bounds=[Bound(1.15)], beside=INTERCEPTED_1K,
             beside_is="direct"),
    Scenario("plain-c1", "latency at one connection, plain", "plain", f"-c 1 {KIB}", PLAIN + "/1k", LATENCY, 2,
             bounds=[Bound(1.3, "haproxy")]),
    Scenario("mitm-c1", "latency at one connection, intercepted", "mitm", f"-c 1 {KIB}", INTERCEPTED + "/1k", LATENCY,
             2, bounds=[Bound(1.3, "haproxy")]),
    Scenario("idle-plain", "memory per idle connection, plain", "plain", "-c 1000 --idle", PLAIN + "/1k", MEMORY,
             bounds=[Bound(5)]),
    Scenario("idle-mitm", "memory per idle connection, intercepted", "mitm", "-c 1000 --idle", INTERCEPTED + "/1k",
             MEMORY, bounds=[Bound(26)]),
    Scenario("start", "start to first response", "plain", "", "", START, bounds=[Bound(25)]),
]

CONNECTIONS = [1, 10, 100, 1_000, 8_000]
LINES = [1, 10, 100, 10_000]
SCALED = {"plain": PLAIN + "/1k", "mitm": INTERCEPTED + "/1k"}


def at_connections(kind, count):
    """Every connection always has a request in flight."""
    return Scenario(f"{kind}-connections-{count}", f"{kind}, {count:,} connections", kind, f"-c {count} {KIB}",
                    SCALED[kind], REQUEST)


def at_lines(kind, count):
    """32 connections, with `count` lines in the allowed-sites list."""
    return Scenario(f"{kind}-lines-{count}", f"{kind}, {count:,} lines", kind, f"-c 32 {KIB}", SCALED[kind], REQUEST)


# The proxies in the order of the tables, each with its scenarios. squid-bump is squid configured to intercept.
EVERYTHING = [scenario.name for scenario in SCENARIOS if not scenario.needs.startswith("parent")]
PLAIN_ONLY = ["plain-1k", "plain-c1", "tunnel-100M", "idle-plain", "start"]
PEERS = {
    "countersign": EVERYTHING,
    "squid": PLAIN_ONLY,
    "squid-bump": [name for name in EVERYTHING if name.startswith(("mitm", "idle-mitm", "start"))],
    "haproxy": EVERYTHING,
    "nginx": EVERYTHING,
    "envoy": EVERYTHING,
    "envoy-aesni": ["mitm-1M", "mitm-up-1M"],
    "mitmproxy": EVERYTHING,
    "px": PLAIN_ONLY,
    "tinyproxy": PLAIN_ONLY,
    "countersign-parent-basic": ["parent-basic", "parent-mitm"],
    "countersign-parent-ntlm": ["parent-ntlm"],
    "countersign-parent-quick": ["parent-quick"],
    "px-parent-basic": ["parent-basic"],
    "px-parent-ntlm": ["parent-ntlm"],
    "tinyproxy-parent-basic": ["parent-basic"],
    "cntlm": ["parent-ntlm"],
}
SHOWN = {"countersign": "Countersign", "squid": "squid", "squid-bump": "squid, ssl-bump", "haproxy": "HAProxy",
         "nginx": "nginx", "envoy": "Envoy", "envoy-aesni": "Envoy without VAES", "mitmproxy": "mitmproxy", "px": "px",
         "tinyproxy": "tinyproxy", "countersign-parent-basic": "Countersign", "countersign-parent-ntlm": "Countersign",
         "countersign-parent-quick": "Countersign",
         "px-parent-basic": "px", "px-parent-ntlm": "px", "tinyproxy-parent-basic": "tinyproxy", "cntlm": "cntlm"}
QUICK_PEERS = ["countersign", "squid", "squid-bump", "haproxy", "envoy"]
CURVE_PEERS = ["countersign", "haproxy"]


def is_countersign(name):
    return name.startswith("countersign")


def countersign_in(scenario):
    """Its configuration for `scenario`."""
    return next(name for name in PEERS if is_countersign(name) and scenario.name in PEERS[name])


def peer_of_bound(name, scenario):
    """Chooses squid's configuration for a goal of `scenario`."""
    return "squid-bump" if name == "squid" and scenario.needs in ("mitm", "newhost", "answers") else name
