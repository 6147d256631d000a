# SPDX-License-Identifier: Apache-2.0
"""The measuring program of Scripts/bench: runs every scenario with every proxy in rounds, then writes the results.

A round runs each scenario with one proxy after the other, so that figures to be compared are measured within a minute.
Each measurement is recorded at once, so that the same command resumes an interrupted run.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time

import machine
import plot
import report
from measure import LOAD_CORE, PROXY_CORE, Lock, Measurer, can_be_realtime
from origin import Origin, make_pki
from parent import Parent
from peer import Peer, pin
from scenarios import (CONNECTIONS, CURVE_PEERS, FIRST_PROXY_PORT, LINES, PEERS, QUICK_PEERS, SCALED, SCENARIOS,
                       at_connections, at_lines, is_countersign)

OLDEST_RESUMED_SECONDS = 6 * 3600


def tell(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    def __init__(self, options, realtime, files):
        self.options, self.realtime, self.files = options, realtime, files
        self.wanted = [scenario for scenario in SCENARIOS
                       if not options.scenarios or scenario.name in options.scenarios]
        self.names = [name for name in (QUICK_PEERS if options.quick else PEERS)
                      if not options.peers or name in options.peers]
        self.peers, self.left_out, self.records = {}, {}, []
        self.started = time.monotonic()
        self.path = f"{options.bench}/{'part' if options.is_part else 'quick' if options.quick else 'full'}.jsonl"

    # Resuming

    def identity(self):
        with open(self.options.binary, "rb") as file:
            binary = hashlib.sha256(file.read()).hexdigest()
        return hashlib.sha256(repr((binary, self.names, [s.name for s in self.wanted], self.options.rounds,
                                    self.options.seconds, self.options.scale)).encode()).hexdigest()

    def open_records(self):
        identity = self.identity()
        try:
            with open(self.path) as file:
                header, *lines = [json.loads(line) for line in file]
            is_recent = time.time() - header["began"] < OLDEST_RESUMED_SECONDS
            if header["identity"] == identity and is_recent and not any("ended" in line for line in lines):
                self.records, self.began = lines, header["began"]
                tell(f"resuming the interrupted run after {len(lines)} measurements")
                return
        except (OSError, ValueError, KeyError):
            pass
        self.began = time.time()
        with open(self.path, "w") as file:
            file.write(json.dumps({"identity": identity, "began": self.began}) + "\n")

    def record(self, line):
        self.records.append(line)
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")

    def is_done(self, round_number, scenario, name):
        return any((r.get("round"), r.get("scenario"), r.get("peer")) == (round_number, scenario.name, name)
                   for r in self.records)

    # Measuring

    def make_peers(self):
        for index, name in enumerate(self.names):
            try:
                self.peers[name] = self.peer(name, FIRST_PROXY_PORT + 4 * index)
            except (OSError, KeyError, ValueError, subprocess.CalledProcessError) as error:
                if is_countersign(name):
                    raise
                tell(f"{name}: {error}")
                self.left_out[name] = "not installed"
                tell(f"{name}: left out; run Scripts/bench --setup to install it")

    def peer(self, name, port, label="", **environment):
        environment["BENCH_COUNTERSIGN"] = self.options.binary
        return Peer(name, port, self.options.bench, environment, label)

    def measure(self, measurer, round_number, peer, scenario):
        """Starts the proxy if it is not running, measures, and records the result."""
        if scenario.is_fresh:
            peer.stop()
        if not peer.runs and scenario.name != "start" and not peer.start(PROXY_CORE, self.realtime):
            result = {"fault": "did not start"}
        else:
            result = measurer.run(peer, scenario)
        if scenario.is_fresh:
            peer.stop()
        self.record({"round": round_number, "scenario": scenario.name, "peer": peer.name, "version": peer.version,
                     **result})
        shown = f"{result['value']:12,.1f} {scenario.unit}" if "value" in result else f"{'–':>12} {result['fault']}"
        tell(f"{round_number} {scenario.name:24} {peer.name:12} {shown}")

    def has_time(self):
        return time.monotonic() - self.started - Lock.waited < self.options.minutes * 60

    def run_round(self, measurer, number):
        for scenario in self.wanted:
            for name, peer in self.peers.items():
                if scenario.name not in PEERS[name] or scenario.needs not in peer.can:
                    continue
                if self.is_done(number, scenario, name):
                    continue
                if not self.has_time():
                    return
                self.measure(measurer, number, peer, scenario)
        for peer in self.peers.values():
            peer.stop()

    def run_scale(self, measurer, number):
        port = FIRST_PROXY_PORT + 4 * len(PEERS)
        for name in (name for name in CURVE_PEERS if name in self.peers):
            for kind in SCALED:
                for count in (count for count in CONNECTIONS if 2 * count + 100 < self.files):
                    self.run_fresh(measurer, number, name, port, at_connections(kind, count))
        if "countersign" in self.peers:
            for count in LINES:
                for kind in SCALED:
                    self.run_fresh(measurer, number, "countersign", port + 4, at_lines(kind, count),
                                   label=f"lines-{count}", BENCH_LINES=str(count))

    def run_fresh(self, measurer, number, name, port, scenario, label="", **environment):
        """Runs in a new process, so that no point of a curve is affected by an earlier one."""
        if self.is_done(number, scenario, name) or not self.has_time():
            return
        peer = self.peer(name, port, label or f"{name}-curve", **environment)
        try:
            self.measure(measurer, number, peer, scenario)
        finally:
            peer.stop()

    def start_parent(self):
        """Starts the parent proxy if a scenario needs it; without squid, those scenarios are left out."""
        needed = [scenario for scenario in self.wanted if scenario.needs.startswith("parent")]
        if not needed:
            return None
        try:
            parent = Parent(self.options.bench)
            if parent.start(LOAD_CORE, self.realtime):
                return parent
        except (OSError, KeyError, subprocess.CalledProcessError):
            pass
        tell("the scenarios with a parent proxy are left out: squid did not start; run Scripts/bench --setup")
        self.wanted = [scenario for scenario in self.wanted if scenario not in needed]
        return None

    def run(self):
        bench = self.options.bench
        make_pki(f"{bench}/pki")
        self.make_peers()
        self.open_records()
        with Origin(f"{bench}/origin", f"{bench}/pki", self.files) as origin:
            pin(origin.pid, LOAD_CORE, self.realtime)
            parent = self.start_parent()
            measurer = Measurer(bench, origin, self.realtime, self.options.seconds)
            try:
                for number in range(1, self.options.rounds + 1):
                    self.run_round(measurer, number)
                    if self.options.scale and number <= self.options.scale:
                        self.run_scale(measurer, number)
            finally:
                for peer in [*self.peers.values(), parent]:
                    if peer:
                        peer.stop()
        if not self.has_time():
            tell(f"stopped after {self.options.minutes:g} minutes; some figures have fewer rounds")
        self.record({"ended": time.time()})

    # Writing

    def write(self):
        folder = self.options.results
        os.makedirs(folder, exist_ok=True)
        text = report.text(self.records, self.names, self.left_out, machine.description(self.realtime), self.began)
        for name, content in (("proxy.md", text), ("proxy.svg", plot.bars(self.records, self.names)),
                              ("scale.svg", plot.curves(self.records))):
            if content:
                with open(f"{folder}/{name}.tmp", "w") as file:
                    file.write(content)
                os.rename(f"{folder}/{name}.tmp", f"{folder}/{name}")
        print(text)
        took = int(time.monotonic() - self.started)
        tell(f"wrote proxy.md, proxy.svg and scale.svg in {os.path.relpath(folder)} after {took // 60} min"
             f" {took % 60} s, including {Lock.waited:.0f} s waiting for another benchmark")


def main():
    parser = argparse.ArgumentParser(prog="Scripts/bench", add_help=False)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--peers", type=lambda text: text.split(","))
    parser.add_argument("--scenarios", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--scale", type=int)
    options = parser.parse_args()
    selections = ("peers", "scenarios", "rounds", "seconds", "minutes", "scale")
    options.is_part = any(getattr(options, name) is not None for name in selections)
    for name, full, quick in (("rounds", 3, 2), ("seconds", 3, 1.5), ("minutes", 38, 5.3), ("scale", 2, 1)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)
    known = {"peers": list(PEERS), "scenarios": [scenario.name for scenario in SCENARIOS]}
    for kind, names in known.items():
        for name in getattr(options, kind) or []:
            if name not in names:
                sys.exit(f"Scripts/bench: unknown {kind[:-1]} '{name}'; known: {', '.join(names)}")
    os.sched_setaffinity(0, {LOAD_CORE})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40_000, 40_000))
    except (OSError, ValueError):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    run = Run(options, can_be_realtime(), files)
    if options.report:
        with open(run.path) as file:
            header, *run.records = [json.loads(line) for line in file]
        run.began = header["began"]
    else:
        run.run()
    run.write()


main()
