# SPDX-License-Identifier: Apache-2.0
"""Counts user instructions per request under callgrind and compares them with the stored figures and the ceilings.

One process of the proxy answers N requests, another 2 N; the difference divided by N excludes start-up. There is one
event loop. With one connection, each pass of the loop serves one request; with eight, a pass serves several, as under
load. More connections would distort the result: the pool keeps eight idle connections per origin, and callgrind is so
slow that the others would be closed and reopened between requests. Other load on the machine does not change the count.
"""

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

from origin import Origin, make_pki
from peer import Peer
from scenarios import FIRST_PROXY_PORT, SCALED

REQUESTS = 10_000
CONNECTIONS = (1, 8)
# For several requests per pass of the event loop.
CEILINGS = {"plain-8": 30_000, "mitm-8": 60_000}
TOLERANCE = 0.03
TITLES = {"plain": "plain", "mitm": "intercepted"}


def read_figures(path):
    """Parses lines of the form `kind-connections number`; # starts a comment."""
    figures = {}
    try:
        with open(path) as file:
            for line in file:
                words = line.split("#")[0].split()
                if words:
                    figures[words[0]] = int(words[1].replace(",", ""))
    except OSError:
        pass
    return figures


class Counter:
    def __init__(self, bench, binary, profiles):
        self.bench, self.profiles = bench, profiles
        self.environment = {"BENCH_COUNTERSIGN": binary}

    def count(self, kind, connections, requests):
        """The instructions of a whole run, from start to exit."""
        # Random hash seeds would change the count by tenths of a percent.
        peer = Peer("countersign", FIRST_PROXY_PORT, self.bench,
                    {**self.environment, "SWIFT_DETERMINISTIC_HASHING": "1"}, "countersign-callgrind")
        profile = f"{self.profiles}/{kind}-{connections}-{requests}"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *peer.command]
        with open(f"{peer.folder}/callgrind.log", "w+") as log:
            proxy = subprocess.Popen(command, env=peer.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
            try:
                self.await_listening(proxy, log)
                load = [f"{self.bench}/load", "-c", str(connections), "-w", "0", "-t", "500", "-n", str(requests),
                        "--expect-length", "1024", "--proxy", f"127.0.0.1:{peer.port}"]
                load += ["--anchors", peer.root] if kind == "mitm" else []
                run = subprocess.run([*load, SCALED[kind]], capture_output=True, text=True, check=False)
                result = json.loads(run.stdout or "{}")
                if result.get("answered") != requests or result["failed"] or result["refused"]:
                    sys.exit(f"Scripts/bench: {run.stdout or run.stderr}")
            finally:
                proxy.send_signal(signal.SIGTERM)
                proxy.wait()
            log.seek(0)
            return int(re.search(r"Collected : (\d+)", log.read())[1])

    @staticmethod
    def await_listening(proxy, log):
        end = time.monotonic() + 120
        while "listening on" not in open(log.name).read():
            if proxy.poll() is not None or time.monotonic() > end:
                sys.exit(f"Scripts/bench: the proxy did not start under valgrind:\n{open(log.name).read()[-800:]}")
            time.sleep(0.1)

    def per_request(self, kind, connections):
        return (self.count(kind, connections, 2 * REQUESTS) - self.count(kind, connections, REQUESTS)) / REQUESTS


def title(name):
    kind, connections = name.split("-")
    return f"{TITLES[kind]}, {connections} kept connection{'' if connections == '1' else 's'}"


def verdict(name, measured, agreed):
    """The fault of a figure, or an empty string."""
    if agreed is None:
        return "Benchmarks/instructions has no figure"
    if abs(measured / agreed - 1) > TOLERANCE:
        return f"differs by {100 * (measured / agreed - 1):+.1f} % from {agreed:,} in Benchmarks/instructions"
    if measured > CEILINGS.get(name, measured):
        return f"above the ceiling of {CEILINGS[name]:,}"
    return ""


def main():
    parser = argparse.ArgumentParser(prog="Scripts/bench --check-instructions", add_help=False)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--figures", required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    profiles = f"{options.bench}/callgrind"
    os.makedirs(profiles, exist_ok=True)
    make_pki(f"{options.bench}/pki")
    agreed, measured = read_figures(options.figures), {}
    counter = Counter(options.bench, options.binary, profiles)
    with Origin(f"{options.bench}/origin", f"{options.bench}/pki", 4_000):
        for kind, connections in itertools.product(SCALED, CONNECTIONS):
            name = f"{kind}-{connections}"
            measured[name] = counter.per_request(kind, connections)
            ceiling = f"; ceiling: {CEILINGS[name]:,}" if name in CEILINGS else ""
            print(f"{title(name)}: {measured[name]:,.0f} instructions per request (stored: "
                  f"{agreed.get(name, 0):,}{ceiling})", flush=True)
    if options.write:
        with open(options.figures, "w") as file:
            file.write("# User instructions per request with a response of 1 KiB, by number of kept connections\n"
                       "# (callgrind, static release build). Scripts/bench --write-instructions writes this file;\n"
                       "# --check-instructions permits a difference of 3 %.\n")
            for name, figure in measured.items():
                file.write(f"{name} {figure:.0f}\n")
        agreed = read_figures(options.figures)
    faults = {name: fault for name in measured if (fault := verdict(name, measured[name], agreed.get(name)))}
    for name, fault in faults.items():
        print(f"Scripts/bench: {title(name)}: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
