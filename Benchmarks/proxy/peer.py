# SPDX-License-Identifier: Apache-2.0
"""A proxy under test. Its script in peers/ writes its configuration and prints the command that starts it."""

import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import time

from scenarios import BEARER_TOKEN, HTTP_PORT, PARENT_PORT, QUICK_PARENT_PORT, TLS_PORT

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers")


def tree(pid):
    """The process and all its descendants."""
    found = [pid]
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                for child in file.read().split():
                    found += tree(int(child))
    except OSError:
        pass
    return found


def resident_kib(pid):
    """The sum of VmRSS over the process and its descendants."""
    total = 0
    for process in tree(pid):
        try:
            with open(f"/proc/{process}/status") as file:
                total += int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
        except (OSError, TypeError):
            pass
    return total


def pin(pid, core, realtime):
    """Pins all threads of the process and its descendants to one core, optionally with real-time priority."""
    for process in tree(pid):
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                os.sched_setaffinity(int(thread), {core})
                if realtime:
                    os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
        except OSError:
            pass


class Peer:
    probed, expected = "plain.bench.test", b"200"

    def __init__(self, name, port, bench, environment=None, label=""):
        self.name, self.port = name, port
        self.folder = f"{bench}/run/{label or name}"
        # Countersign also reads its flags from COUNTERSIGN_ variables; those set for the benchmark are not for it.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
        self.environment = {**inherited, "BENCH": bench, "BENCH_HTTP_PORT": str(HTTP_PORT),
                            "BENCH_TLS_PORT": str(TLS_PORT), "BENCH_BEARER_TOKEN": BEARER_TOKEN,
                            "BENCH_PARENT_PORT": str(PARENT_PORT),
                            "BENCH_QUICK_PARENT_PORT": str(QUICK_PARENT_PORT),
                            **(environment or {})}
        self.root = f"{bench}/pki/root.pem"
        self.process = self.pid = None
        shutil.rmtree(self.folder, ignore_errors=True)
        self.prepare()

    def prepare(self):
        os.makedirs(self.folder, mode=0o755, exist_ok=True)
        text = subprocess.run([f"{SCRIPTS}/{self.name}", str(self.port), self.folder], env=self.environment, check=True,
                              capture_output=True, text=True).stdout
        said = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        self.can, self.version, self.command = said["can"].split(), said["version"], shlex.split(said["command"])
        self.root = said.get("root", self.root)
        self.intercepts_at = self.port + 1 if "direct" in self.can else self.port

    def spawn(self, core, realtime):
        prefix = ["taskset", "-c", str(core)] + (["chrt", "-r", "1"] if realtime else [])
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(prefix + self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True, env=self.environment)
        self.pid = self.process.pid

    def start(self, core, realtime):
        """Starts it; returns whether it answers within 30 seconds."""
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                raise SystemExit(f"Scripts/bench: port {self.port} is in use")
        self.prepare()
        self.spawn(core, False)
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            if self.answers():
                time.sleep(0.3)
                pin(self.pid, core, realtime)
                return True
            time.sleep(0.05)
        self.stop()
        return False

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None

    def answers(self, timeout=5):
        """Whether a plain request gets the expected status."""
        host = f"{self.probed}:{HTTP_PORT}"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout) as stream:
                stream.sendall(f"GET http://{host}/1k HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                return stream.recv(4096)[9:12] == self.expected
        except OSError:
            return False

    def intercepts(self):
        """Whether a request through TLS that the proxy terminates gets a 200."""
        host = f"mitm.bench.test:{TLS_PORT}"
        try:
            with socket.create_connection(("127.0.0.1", self.intercepts_at), 10) as stream:
                if "direct" not in self.can:
                    stream.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    while b"\r\n\r\n" not in stream.recv(4096):
                        pass
                context = ssl.create_default_context(cafile=self.root)
                with context.wrap_socket(stream, server_hostname="mitm.bench.test") as tls:
                    tls.sendall(f"GET /1k HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    return tls.recv(4096)[9:12] == b"200"
        except OSError:
            return False

    def stop(self):
        if self.process is None:
            return
        started = tree(self.pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in started:
                try:
                    os.kill(process, number)
                except OSError:
                    pass
            try:
                self.process.wait(3)
                break
            except subprocess.TimeoutExpired:
                pass
        for process in started[1:]:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        self.process = self.pid = None
