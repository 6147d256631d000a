# SPDX-License-Identifier: Apache-2.0
"""One measurement: one scenario with one proxy in one round."""

import fcntl
import json
import os
import statistics
import subprocess
import time

from peer import pin, resident_kib
from scenarios import GIGABYTE, LATENCY, MEMORY, REQUEST, START, is_countersign

PROXY_CORE, LOAD_CORE = 0, 1
STARTS, TURNS = 3, 4


class Lock:
    """Machine-wide: two benchmarks at the same time would measure each other."""

    path, waited = "/tmp/bench.lock", 0.0

    def __enter__(self):
        try:
            self.file = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            self.file = os.open(self.path, os.O_RDONLY | os.O_CREAT, 0o644)
        began = time.monotonic()
        fcntl.flock(self.file, fcntl.LOCK_EX)
        Lock.waited += time.monotonic() - began

    def __exit__(self, *_):
        os.close(self.file)


class Measurer:
    def __init__(self, bench, origin, realtime, seconds=None):
        self.load, self.origin, self.realtime, self.seconds = f"{bench}/load", origin, realtime, seconds

    def run(self, peer, scenario):
        """The figures, or `fault` with the reason for their absence."""
        with Lock():
            if scenario.unit == START:
                return self.start(peer)
            pin(peer.pid, PROXY_CORE, self.realtime)
            if scenario.unit == MEMORY:
                return self.memory(peer, scenario)
            is_paired = scenario.beside and is_countersign(peer.name)
            return self.in_turns(peer, scenario) if is_paired else self.work(peer, scenario)

    def command(self, peer, scenario, connections=None, turns=1):
        load = scenario.load.split()
        if connections:
            load[load.index("-c") + 1] = str(connections)
        command = ["taskset", "-c", str(LOAD_CORE)] + (["chrt", "-r", "1"] if self.realtime else [])
        command += [self.load, *load, "-t", f"{self.seconds_of(scenario) / turns:g}", "--pid", str(peer.pid)]
        intercepted = scenario.needs in ("mitm", "newhost", "answers", "parent-mitm")
        if intercepted and "direct" in peer.can:
            command += ["--direct-to", f"127.0.0.1:{peer.intercepts_at}"]
        else:
            command += ["--proxy", f"127.0.0.1:{peer.port}"]
        if intercepted and "--close" not in load:
            command += ["--anchors", peer.root]
        if scenario.needs == "tunnel":
            command += ["--expect-issuer", "Bench Origin Root"]
        return command + [scenario.url]

    def seconds_of(self, scenario):
        return min(self.seconds, scenario.seconds) if self.seconds and "-n" not in scenario.load else scenario.seconds

    def in_turns(self, peer, scenario):
        """Alternates between the scenario and the one it is compared with, because a machine's speed drifts."""
        mine, other = [], []
        for turn in range(TURNS):
            pair = [(scenario, mine), (scenario.beside, other)]
            for each, results in pair if turn % 2 == 0 else reversed(pair):
                results.append(self.work(peer, each, TURNS))
                if "fault" in results[-1]:
                    return results[-1]
        result = {key: statistics.median(turn[key] for turn in mine) for key in ("p50_us", "p99_us", "rate")}
        result["value"], result["beside"] = (
            sum(turn["cpu_s"] for turn in results) * 1e6 / sum(turn["answered"] for turn in results)
            for results in (mine, other))
        result["ratio"] = result["value"] / result["beside"]
        return result

    def work(self, peer, scenario, turns=1):
        answers = self.origin.ntlm_answers()
        spinner = None
        if self.realtime:  # has lower priority than the proxy and keeps its core from idling
            spinner = subprocess.Popen(["taskset", "-c", str(PROXY_CORE), self.load, "--spin", "200"])
        try:
            run = subprocess.run(self.command(peer, scenario, turns=turns), capture_output=True, text=True, timeout=190)
        except subprocess.TimeoutExpired:
            return {"fault": "timed out"}
        finally:
            if spinner:
                spinner.kill()
                spinner.wait()
        try:
            result = json.loads(run.stdout)
        except ValueError:
            return {"fault": (run.stderr or run.stdout).strip()[:120] or f"load exited with {run.returncode}"}
        wrong = result["failed"] + result["refused"]
        if result["answered"] == 0 or wrong > result["answered"] // 100:
            return {"fault": f"{wrong} of {wrong + result['answered']} failed: {result['error']}"}
        if scenario.needs in ("mitm", "parent-mitm") and "Origin" in result["issuer"]:
            return {"fault": "not intercepted"}
        if scenario.name == "mitm-ntlm" and self.origin.ntlm_answers() == answers:
            return {"fault": "no challenge was answered"}
        result["cost_us"] = result["cpu_s"] * 1e6 / result["answered"]
        result["rate"] = result["answered"] / result["seconds"]
        if scenario.unit == GIGABYTE:
            result["value"] = result["cpu_s"] * 1e12 / result["bytes"]
            result["megabytes"] = result["bytes"] / result["seconds"] / 1e6
        else:
            result["value"] = {REQUEST: result["cost_us"], LATENCY: result["p50_us"]}[scenario.unit]
        return result

    def memory(self, peer, scenario):
        """Opens a few connections first, to exclude what the proxy allocates once."""
        subprocess.run(self.command(peer, scenario, connections=4), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, timeout=120, check=False)
        time.sleep(0.3)
        before = resident_kib(peer.pid)
        load = subprocess.Popen(self.command(peer, scenario), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            held = json.loads(load.stdout.readline() or "{}")
            time.sleep(2)
            after = resident_kib(peer.pid)
            load.stdin.close()
            alive = json.loads(load.stdout.readline() or "{}").get("alive", 0)
        finally:
            load.kill()
            load.wait()
        if alive < 950:
            return {"fault": f"only {alive} of 1,000 connections stayed open: {held.get('error', '')}"}
        return {"value": (after - before) / alive, "alive": alive, "before_kib": before}

    def start(self, peer):
        times, more = [], []
        for _ in range(STARTS):
            peer.prepare()
            time.sleep(0.1)
            began = time.monotonic()
            peer.spawn(PROXY_CORE, self.realtime)
            while not peer.answers(30) and peer.runs and time.monotonic() < began + 30:
                time.sleep(0.001)
            answered = time.monotonic()
            times.append((answered - began) * 1e3)
            if peer.runs and "mitm" in peer.can and peer.intercepts():
                more.append((time.monotonic() - answered) * 1e3)
            stopped = not peer.runs
            peer.stop()
            if stopped:
                return {"fault": "did not start"}
        result = {"value": statistics.median(times)}
        if more:
            result["intercepted_ms"] = statistics.median(more)
        return result


def can_be_realtime():
    """Whether this user may give the proxy, the origin and the load real-time priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return True
    except OSError:
        return False
