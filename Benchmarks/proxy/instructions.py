# SPDX-License-Identifier: Apache-2.0
"""User instructions a request under callgrind, against the figures that are checked in and the ceilings.

The proxy answers N requests, then in another process 2 N: the difference over N has no start-up in it. One event loop;
one connection, so that every request is a turn of its own, and eight, where a turn serves several, as under load. Not
more: only eight wait idle for one origin for long, and in callgrind's slow motion others would be closed and made anew
in between. What else goes on on the machine cannot be seen in it.
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
# Under load.
CEILINGS = {"plain-8": 30_000, "mitm-8": 60_000}
TOLERANCE = 0.03
TITLES = {"plain": "plain", "mitm": "intercepted"}


def read_figures(path):
    """Lines `kind-connections number`; # begins a comment."""
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
        """Instructions of a whole run: start, requests, end."""
        # Hash seeds by chance would move a run by tenths of a percent.
        peer = Peer("countersign", FIRST_PROXY_PORT, self.bench,
                    {**self.environment, "SWIFT_DETERMINISTIC_HASHING": "1"}, "countersign-callgrind")
        profile = f"{self.profiles}/{kind}-{connections}-{requests}"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *peer.command]
        with open(f"{peer.folder}/callgrind.log", "w+") as log:
            proxy = subprocess.Popen(command, env=peer.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
            try:
                self.await_door(proxy, log)
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
    def await_door(proxy, log):
        end = time.monotonic() + 120
        while "listening on" not in open(log.name).read():
            if proxy.poll() is not None or time.monotonic() > end:
                sys.exit(f"Scripts/bench: the proxy does not start under valgrind:\n{open(log.name).read()[-800:]}")
            time.sleep(0.1)

    def a_request(self, kind, connections):
        return (self.count(kind, connections, 2 * REQUESTS) - self.count(kind, connections, REQUESTS)) / REQUESTS


def title(name):
    kind, connections = name.split("-")
    return f"{TITLES[kind]}, {connections} kept connection{'' if connections == '1' else 's'}"


def verdict(name, measured, agreed):
    """What is wrong with a figure, or nothing."""
    if agreed is None:
        return "no figure is checked in"
    if abs(measured / agreed - 1) > TOLERANCE:
        return f"{100 * (measured / agreed - 1):+.1f} % off the {agreed:,} that are checked in"
    if measured > CEILINGS.get(name, measured):
        return f"over the ceiling of {CEILINGS[name]:,}"
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
            measured[name] = counter.a_request(kind, connections)
            ceiling = f"; ceiling: {CEILINGS[name]:,}" if name in CEILINGS else ""
            print(f"{title(name)}: {measured[name]:,.0f} instructions a request (checked in: "
                  f"{agreed.get(name, 0):,}{ceiling})", flush=True)
    if options.write:
        with open(options.figures, "w") as file:
            file.write("# User instructions a request: 1 KiB, that many kept connections, callgrind, static release build.\n"
                       "# Scripts/bench --write-instructions writes this; --check-instructions holds it within 3 %.\n")
            for name, figure in measured.items():
                file.write(f"{name} {figure:.0f}\n")
        agreed = read_figures(options.figures)
    faults = {name: fault for name in measured if (fault := verdict(name, measured[name], agreed.get(name)))}
    for name, fault in faults.items():
        print(f"Scripts/bench: {title(name)}: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
