# SPDX-License-Identifier: Apache-2.0
"""A Samba domain controller on a loopback address of its own, and sites that ask it about every password.

Everything is in one folder: the databases, the sockets, the logs. Samba's programs look for winbindd's socket in
/run/samba, so this process needs a mount namespace of its own (`unshare --mount`), and root. It counts wrong passwords
as Active Directory does: `badPwdCount`.
"""

import asyncio
import base64
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse

from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB

REALM, DOMAIN, BASE = "AD.TEST", "ADTEST", "DC=ad,DC=test"
SETTINGS = """
	old password allowed period = 0
	log level = 0
	logging = file
	server services = rpc, kdc, ldap, cldap, winbindd
	winbindd socket directory = /run/samba/winbindd
"""


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Controller:
    """Provisions and runs the domain controller."""

    def __init__(self, folder, address):
        self.folder, self.address = folder, address
        self.settings = f"{folder}/etc/smb.conf"
        self.process = None

    def run(self, *words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{words[0]} {words[1]}: {done.stdout}{done.stderr}")

    def provision(self):
        folder = self.folder
        options = [
            f"--option=interfaces={self.address}/8", "--option=bind interfaces only=yes",
            f"--option=ntp signd socket directory={folder}/ntp", f"--option=pid directory={folder}/pid",
            f"--option=ncalrpc dir={folder}/ncalrpc", f"--option=log file={folder}/log.%m",
            f"--option=cache directory={folder}/cache",
        ]
        self.run(
            "samba-tool", "domain", "provision", f"--realm={REALM}", f"--domain={DOMAIN}", "--server-role=dc",
            "--dns-backend=NONE", "--adminpass=Kanarie-Admin-1", "--host-name=dc1", f"--host-ip={self.address}",
            f"--targetdir={folder}", *options)
        with open(self.settings) as file:
            lines = [line for line in file if not line.strip().startswith(("server services", "winbindd socket"))]
        for name in ("pid", "ncalrpc", "cache", "run"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        with open(self.settings, "w") as file:
            file.write("".join(lines).replace("[global]", "[global]" + SETTINGS, 1))
        # The password before the last one counts as wrong, too, and no count ends early because the account is locked.
        self.run(
            "samba-tool", "domain", "passwordsettings", "set", "-s", self.settings, "--complexity=off",
            "--history-length=0", "--min-pwd-age=0", "--max-pwd-age=0", "--min-pwd-length=1",
            "--account-lockout-threshold=999")

    def start(self):
        os.makedirs("/run/samba", exist_ok=True)
        self.run("mount", "--bind", f"{self.folder}/run", "/run/samba")
        with open(f"{self.folder}/samba.log", "wb") as log:
            self.process = subprocess.Popen(
                ["samba", "--interactive", "--no-process-group", "--model=standard", f"--configfile={self.settings}"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=end_with_parent)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            done = subprocess.run(
                ["ntlm_auth", "--helper-protocol=squid-2.5-basic", f"--configfile={self.settings}"],
                input="Administrator Kanarie-Admin-1\n", capture_output=True, text=True)
            if done.stdout.startswith("OK"):
                break
            time.sleep(0.2)
        else:
            sys.exit("samba did not start: " + open(f"{self.folder}/samba.log").read())
        parameters = LoadParm()
        parameters.load(self.settings)
        self.database = SamDB(
            url=f"{self.folder}/private/sam.ldb", session_info=system_session(), lp=parameters)

    def stop(self):
        """Samba ends, with its children, when its standard input does."""
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    # Accounts

    def add(self, users, password):
        self.database.transaction_start()
        for user in users:
            self.database.add({
                "dn": f"CN={user},CN=Users,{BASE}", "objectClass": "user", "sAMAccountName": user,
                "userPrincipalName": f"{user}@ad.test", "userAccountControl": "512",
                "clearTextPassword": password.encode("utf-16-le")})
        self.database.transaction_commit()

    def set_password(self, user, password):
        import ldb
        message = ldb.Message(ldb.Dn(self.database, f"CN={user},CN=Users,{BASE}"))
        message["clearTextPassword"] = ldb.MessageElement(
            password.encode("utf-16-le"), ldb.FLAG_MOD_REPLACE, "clearTextPassword")
        self.database.modify(message)

    def wrong_passwords(self, user):
        found = self.database.search(BASE, expression=f"(sAMAccountName={user})", attrs=["badPwdCount"])
        return int(str(found[0].get("badPwdCount", ["0"])[0]))

    def krb5(self, path):
        with open(path, "w") as file:
            file.write(
                f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
                f"[realms]\n {REALM} = {{\n  kdc = {self.address}:88\n }}\n")
        return path


class Helpers:
    """A few ntlm_auth processes that take turns."""

    def __init__(self, settings, protocol, count):
        self.command = ["ntlm_auth", f"--helper-protocol={protocol}", f"--configfile={settings}"]
        self.free, self.count = asyncio.Queue(), count

    async def start(self):
        for _ in range(self.count):
            self.free.put_nowait(await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, preexec_fn=end_with_parent))

    @staticmethod
    async def ask(process, line):
        process.stdin.write(line.encode() + b"\n")
        return (await process.stdout.readline()).decode().strip()


class Sites:
    """Sites that challenge for Basic and NTLM, or for Negotiate only, and a parent proxy."""

    def __init__(self, controller):
        self.basic = Helpers(controller.settings, "squid-2.5-basic", 6)
        self.ntlm = Helpers(controller.settings, "squid-2.5-ntlmssp", 6)
        self.sent = {}

    async def start(self, count):
        await self.basic.start()
        await self.ntlm.start()
        ports = {}
        for kind, number in (("basic", count), ("ntlm", count), ("negotiate", 1), ("parent", 1)):
            ports[kind] = []
            for _ in range(number):
                server = await asyncio.start_server(
                    lambda reader, writer, kind=kind: self.serve(kind, reader, writer), "127.0.0.1", 0, backlog=512)
                ports[kind].append(server.sockets[0].getsockname()[1])
        return ports

    async def serve(self, kind, reader, writer):
        connection = Connection(self, kind, reader, writer)
        try:
            while await connection.respond():
                pass
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            connection.end()
            writer.close()


class Connection:
    def __init__(self, sites, kind, reader, writer):
        self.sites, self.kind, self.reader, self.writer = sites, kind, reader, writer
        self.user = None
        self.helper = None

    def end(self):
        if self.helper is not None:
            self.sites.ntlm.free.put_nowait(self.helper)
        self.helper = None

    async def respond(self):
        """Under /slow/N the verdict takes N milliseconds, and under /public/ nothing is asked."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, _, rest = head.partition("\r\n")
        method, target, _ = line.split(" ")
        fields = dict(
            (name.lower(), value.strip()) for name, _, value in (field.partition(":") for field in rest.split("\r\n")))
        await self.reader.readexactly(int(fields.get("content-length", 0)))
        path = urllib.parse.urlsplit(target).path
        if path.startswith("/public/"):
            return self.reply(200)
        value = fields.get("proxy-authorization" if self.kind == "parent" else "authorization")
        slow = re.match(r"/slow/(\d+)", path)
        challenge = await self.judge(value, int(slow[1]) / 1000 if slow and value else 0)
        if challenge is None:
            return self.reply(200, close=method == "CONNECT")
        return self.reply(407 if self.kind == "parent" else 401, challenge)

    def reply(self, status, challenge=None, close=False):
        name = "Proxy-Authenticate" if self.kind == "parent" else "WWW-Authenticate"
        field = "".join(f"{name}: {one}\r\n" for one in challenge or [])
        length = "" if close else "Content-Length: 2\r\n"
        self.writer.write(f"HTTP/1.1 {status} X\r\n{length}{field}\r\n{'' if close else 'ok'}".encode())
        return not close

    async def judge(self, value, delay):
        """The challenges; None if the answer is accepted."""
        if self.kind == "negotiate":
            return ["Negotiate"]
        scheme, _, text = (value or "").partition(" ")
        if self.kind == "ntlm":
            if self.user is not None and value is None:
                return None
            if scheme == "NTLM":
                return await self.judge_ntlm(text, delay)
            return ["NTLM"]
        if scheme != "Basic":
            return ['Basic realm="ad"']
        user, _, password = base64.b64decode(text).decode().partition(":")
        helper = await self.sites.basic.free.get()
        try:
            verdict = await Helpers.ask(helper, f"{urllib.parse.quote(user)} {urllib.parse.quote(password)}")
        finally:
            self.sites.basic.free.put_nowait(helper)
        await asyncio.sleep(delay)
        return None if verdict.startswith("OK") else ['Basic realm="ad"']

    async def judge_ntlm(self, token, delay):
        self.user = None
        if self.helper is None:
            self.helper = await self.sites.ntlm.free.get()
            answer = await Helpers.ask(self.helper, "YR " + token)
            if not answer.startswith("TT "):
                self.end()
                return ["NTLM"]
            return ["NTLM " + answer[3:]]
        answer = await Helpers.ask(self.helper, "KK " + token)
        self.end()
        await asyncio.sleep(delay)
        if answer.startswith("AF "):
            self.user = answer[3:]
            return None
        return ["NTLM"]
