# SPDX-License-Identifier: Apache-2.0
"""Schedules in which the password of an account changes while Countersign uses it, judged by a domain controller.

Usage: unshare --mount --propagation private python3 lockout_schedules.py FOLDER ADDRESS PROGRAMS COUNT SEED [KIND]

PROGRAMS is the folder of `countersign` and `CountersignDelegatingProxy`. Each schedule has an account and a home of its
own. Prints one JSON object per schedule: its kind and seed, how many wrong passwords the controller has counted, how
many are permitted, and how many of the last requests failed although the password was right.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import time

from domain import DOMAIN, REALM, Controller, Sites, end_with_parent

FOLDER, ADDRESS, PROGRAMS, COUNT, SEED = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
ONLY = sys.argv[6] if len(sys.argv) > 6 else None
RIGHT, OTHER = "kanarie-right", "kanarie-other"
SITES = 20
# The accounts of a schedule are quiet after so many seconds: more than the breaker's ten.
QUIET = 10.6
# Fewer in the short form, which runs beside other tests.
AT_ONCE = 24 if COUNT > 50 else 8


class Proxy:
    def __init__(self, schedule, process, port):
        self.schedule, self.process, self.port = schedule, process, port

    @classmethod
    async def start(cls, schedule, *flags, library=False):
        if library:
            words, prefix = ["CountersignDelegatingProxy", schedule.home, "no"], "listening 127.0.0.1:"
        else:
            words, prefix = ["countersign", "serve", "--listen", "127.0.0.1:0", "--home", schedule.home], None
        words[0] = f"{PROGRAMS}/{words[0]}"
        process = await asyncio.create_subprocess_exec(
            *words, *flags, env=schedule.environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, preexec_fn=end_with_parent)
        prefix = prefix or "countersign: listening on 127.0.0.1:"
        said = ""
        while not said.startswith(prefix):
            line = await process.stdout.readline()
            if not line:
                raise RuntimeError("the proxy ended")
            said = line.decode()
        proxy = cls(schedule, process, int(said[len(prefix):].split()[0].strip()))
        proxy.reading = asyncio.create_task(process.stdout.read())
        schedule.proxies.append(proxy)
        return proxy

    async def get(self, url, patience=60):
        """The status; 0 if the client has left, or the connection has ended."""
        try:
            return await asyncio.wait_for(self.fetch(url), patience)
        except (asyncio.TimeoutError, OSError, ValueError, IndexError):
            return 0

    async def fetch(self, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            authority = url.split("/")[2]
            if url.startswith("connect:"):
                head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
            else:
                head = f"GET {url} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
            writer.write(head.encode())
            return int((await reader.readline()).split()[1])
        finally:
            writer.close()

    def kill(self):
        if self.process.returncode is None:
            self.process.kill()


class Schedule:
    """One account, its home, and what happens to it."""

    def __init__(self, number, user, controller, ports):
        self.random = random.Random(f"{SEED} {number}")
        self.number, self.user, self.controller = number, user, controller
        self.home = f"{FOLDER}/homes/{number}"
        self.proxies, self.processes, self.allowed = [], [], 2
        self.environment = {
            "HOME": self.home, "PATH": os.environ["PATH"], "KRB5_CONFIG": f"{FOLDER}/client.krb5",
            "KRB5CCNAME": f"FILE:{self.home}/tickets"}
        self.ports = ports
        kinds = sorted(KINDS) if ONLY is None else [ONLY]
        self.kind = kinds[number % len(kinds)]
        # One in six is about a password that stays right.
        self.changes = self.random.random() < 5 / 6 or self.kind == "flow"

    # The set-up

    async def run(self, *words, stdin=""):
        process = await asyncio.create_subprocess_exec(
            f"{PROGRAMS}/countersign", *words, "--home", self.home, env=self.environment, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, preexec_fn=end_with_parent)
        said, _ = await process.communicate(stdin.encode())
        if process.returncode != 0:
            raise RuntimeError(f"{words}: {said.decode()}")

    async def prepare(self):
        os.makedirs(f"{self.home}/AllowedSites")
        await self.run("credential", "set", "enrollment", "--user", self.user, "--password-stdin", stdin=RIGHT)
        kinds = self.random.choice([["basic"], ["ntlm"], ["basic", "ntlm"]])
        both = [(kind, port) for kind in kinds for port in self.ports[kind]]
        self.random.shuffle(both)
        self.sites = [f"http://site.test.localhost:{port}" for _, port in both[:self.random.choice([2, 10, SITES])]]
        lines = [
            f"http://site.test.localhost:{port} answer={kind} plaintext=yes domain={DOMAIN}\n" for kind, port in both]
        lines.append(f"http://site.test.localhost:{self.ports['negotiate'][0]} answer=negotiate plaintext=yes"
                     " credential=work\n")
        lines.append(f"proxy://127.0.0.1:{self.ports['parent'][0]} answer=basic plaintext=yes\n")
        with open(f"{self.home}/AllowedSites/test.sites", "w") as file:
            file.writelines(lines)

    async def enroll_principal(self):
        await self.run("credential", "set", "work", "--principal", f"{self.user}@{REALM}", "--password-stdin",
                       stdin=RIGHT)
        return f"http://site.test.localhost:{self.ports['negotiate'][0]}/"

    def page(self, site=None):
        """A page that was accepted before, or a new one, at once or after a while."""
        path = self.random.choice(["/", "/", "/new/%d" % self.random.randrange(10**6), "/slow/200"])
        return (site or self.random.choice(self.sites)) + path

    async def warm(self, proxy):
        """Every site accepts the password."""
        for site in self.sites:
            status = await proxy.get(site + "/")
            if status != 200:
                raise RuntimeError(f"{site} answers {status} to the right password")

    async def change(self):
        if self.changes:
            self.controller.set_password(self.user, OTHER)

    # What happens

    async def crowd(self, proxy, count=100, patience=None):
        async def one(number):
            wait = patience and self.random.choice([0.002, 0.02, 0.1, patience])
            return await proxy.get(self.page(self.sites[number % len(self.sites)]), wait or 60)
        return await asyncio.gather(*(one(number) for number in range(count)))

    async def command(self, page, kill=None):
        """`exec -- curl`, which may be killed."""
        process = await asyncio.create_subprocess_exec(
            f"{PROGRAMS}/countersign", "exec", "--home", self.home, "--", "curl", "-q", "-s", "-m", "60", "-o",
            "/dev/null", "-w", "%{http_code}", page, env=self.environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, preexec_fn=end_with_parent)
        if kill is not None:
            await asyncio.sleep(kill)
            if process.returncode is None:
                process.kill()
        said, _ = await process.communicate()
        return int(said or 0)

    async def last_requests(self, proxy):
        """A page of each site, after everything else. Those that fail although the password is right."""
        statuses = [await proxy.get(site + "/") for site in self.sites[:5]]
        return 0 if self.changes else sum(status != 200 for status in statuses)

    async def perform(self):
        await self.prepare()
        failed = await KINDS[self.kind](self)
        return {
            "kind": self.kind, "number": self.number, "changes": self.changes, "sites": len(self.sites),
            "wrong": self.controller.wrong_passwords(self.user), "allowed": self.allowed, "failed": failed or 0}

    def end(self):
        for proxy in self.proxies:
            proxy.kill()
        shutil.rmtree(self.home, ignore_errors=True)


async def cold(schedule):
    """The password has changed before anybody uses it."""
    await schedule.change()
    proxy = await Proxy.start(schedule)
    await schedule.crowd(proxy)
    return await schedule.last_requests(proxy)


async def warm(schedule):
    """Every site has accepted the password, then it changes, and then a hundred requests come at once."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    await asyncio.sleep(QUIET)
    await schedule.change()
    await schedule.crowd(proxy)
    await schedule.crowd(proxy, 20)
    return await schedule.last_requests(proxy)


async def impatient(schedule):
    """The clients leave before there is a verdict."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    await asyncio.sleep(QUIET)
    await schedule.change()
    for _ in range(4):
        await schedule.crowd(proxy, 25, patience=0.3)
    await schedule.last_requests(proxy)


async def commands(schedule):
    """Many processes at once, and one after the other."""
    if schedule.random.random() < 0.7:
        await schedule.command(schedule.sites[0] + "/")
    await schedule.change()
    count = schedule.random.choice([1, 3, 6])
    for _ in range(2):
        await asyncio.gather(*(schedule.command(schedule.page()) for _ in range(count)))


async def killed(schedule):
    """Processes are killed at any time."""
    if schedule.random.random() < 0.7:
        await schedule.command(schedule.sites[0] + "/")
    await schedule.change()
    for _ in range(6):
        await schedule.command(schedule.page(), kill=schedule.random.uniform(0.05, 1))
    await schedule.command(schedule.page())


async def restarted(schedule):
    """The server is killed while requests are in progress, and started again."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    await asyncio.sleep(QUIET)
    await schedule.change()
    for _ in range(4):
        crowd = asyncio.create_task(schedule.crowd(proxy, 30))
        await asyncio.sleep(schedule.random.uniform(0, 0.15))
        proxy.kill()
        await crowd
        proxy = await Proxy.start(schedule)
    await schedule.crowd(proxy, 30)


async def replaced(schedule):
    """A new process takes over the sockets while requests come."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    await asyncio.sleep(QUIET)
    await schedule.change()
    crowd = asyncio.create_task(schedule.crowd(proxy, 50))
    await asyncio.sleep(schedule.random.uniform(0, 0.1))
    proxy.process.send_signal(signal.SIGUSR2)
    await crowd
    for _ in range(4):
        await schedule.crowd(proxy, 20)
        await asyncio.sleep(0.1)
    failed = await schedule.last_requests(proxy)
    await end_successors(schedule)
    return failed


async def end_successors(schedule):
    """Ends the processes of the home that are no children of this one."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if schedule.home.encode() in words:
            os.kill(int(name), signal.SIGKILL)


async def library(schedule):
    """A program with the library works beside the command."""
    first, second = await Proxy.start(schedule), await Proxy.start(schedule, library=True)
    await schedule.warm(first)
    if schedule.random.random() < 0.5:
        await schedule.warm(second)
    await asyncio.sleep(QUIET)
    await schedule.change()
    await asyncio.gather(
        schedule.crowd(first, 40), schedule.crowd(second, 40), *(schedule.command(schedule.page()) for _ in range(2)))
    return await schedule.last_requests(second) + await schedule.last_requests(first)


async def parent(schedule):
    """A parent proxy has the same credential, and so have the sites."""
    flags = ["--parent", f"http://127.0.0.1:{schedule.ports['parent'][0]}", "--no-proxy", "localhost"]
    proxy = await Proxy.start(schedule, *flags)
    await schedule.warm(proxy)
    tunnel = "connect://server.corp.test:443/"
    if await proxy.get(tunnel) == 407:
        raise RuntimeError("the parent is not answered")
    await asyncio.sleep(QUIET)
    await schedule.change()
    await asyncio.gather(schedule.crowd(proxy, 40), *(proxy.get(tunnel) for _ in range(10)))
    await asyncio.gather(schedule.crowd(proxy, 10), *(proxy.get(tunnel) for _ in range(5)))
    return await schedule.last_requests(proxy)


async def principal(schedule):
    """The account is enrolled twice: with its password, and as a principal that obtains tickets."""
    page = await schedule.enroll_principal()
    proxy = await Proxy.start(schedule)
    if schedule.random.random() < 0.5:
        await schedule.warm(proxy)
        await asyncio.sleep(QUIET)
    await schedule.change()
    await asyncio.gather(schedule.crowd(proxy, 30), *(proxy.get(page) for _ in range(10)))
    await asyncio.gather(*(proxy.get(page) for _ in range(5)), *(schedule.command(page) for _ in range(2)))
    return await schedule.last_requests(proxy)


async def flow(schedule):
    """The password changes while requests flow: those in flight may be wrong, and two afterwards."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    width, is_over = schedule.random.choice([1, 4, 10]), False

    async def client(number):
        while not is_over:
            await proxy.get(schedule.page())
            await asyncio.sleep(0.01)
    clients = [asyncio.create_task(client(number)) for number in range(width)]
    await asyncio.sleep(schedule.random.uniform(0.2, 1))
    await schedule.change()
    await asyncio.sleep(2)
    is_over = True
    await asyncio.gather(*clients)
    await schedule.crowd(proxy, 50)
    schedule.allowed = width + 2


async def mixed(schedule):
    """Anything, in any order."""
    proxy = await Proxy.start(schedule)
    await schedule.warm(proxy)
    await asyncio.sleep(QUIET)
    await schedule.change()
    for _ in range(5):
        step = schedule.random.choice(["crowd", "impatient", "restart", "commands", "kill", "library"])
        if step == "crowd":
            await schedule.crowd(proxy, 30)
        elif step == "impatient":
            await schedule.crowd(proxy, 15, patience=0.2)
        elif step == "restart":
            crowd = asyncio.create_task(schedule.crowd(proxy, 20))
            await asyncio.sleep(schedule.random.uniform(0, 0.1))
            proxy.kill()
            await crowd
            proxy = await Proxy.start(schedule)
        elif step == "commands":
            await asyncio.gather(*(schedule.command(schedule.page()) for _ in range(2)))
        elif step == "kill":
            await schedule.command(schedule.page(), kill=schedule.random.uniform(0.05, 0.6))
        else:
            await schedule.crowd(await Proxy.start(schedule, library=True), 20)


KINDS = {
    function.__name__: function for function in (
        cold, warm, impatient, commands, killed, restarted, replaced, library, parent, principal, flow, mixed)}


async def main():
    controller = Controller(f"{FOLDER}/domain", ADDRESS)
    controller.provision()
    controller.start()
    try:
        controller.krb5(f"{FOLDER}/client.krb5")
        ports = await Sites(controller).start(SITES)
        users = [f"user{number}" for number in range(COUNT)]
        for start in range(0, COUNT, 50):
            controller.add(users[start:start + 50], RIGHT)
        places = asyncio.Semaphore(AT_ONCE)

        async def one(number):
            async with places:
                schedule = Schedule(number, users[number], controller, ports)
                try:
                    began = time.monotonic()
                    result = await asyncio.wait_for(schedule.perform(), 300)
                    result["seconds"] = round(time.monotonic() - began, 1)
                except Exception as error:
                    result = {"kind": schedule.kind, "number": number, "error": f"{type(error).__name__} {error}"}
                finally:
                    schedule.end()
                print(json.dumps(result), flush=True)
        await asyncio.gather(*(one(number) for number in range(COUNT)))
    finally:
        controller.stop()


asyncio.run(main())
