# SPDX-License-Identifier: Apache-2.0
"""A home with a list that uses every kind of limit, and `countersign serve` with it."""

import dataclasses
import json
import os
import re
import secrets
import shutil
import subprocess
import time

LIMITS = "methods=GET,HEAD paths=/in/**,!/in/admin/**"
PATHS = "paths=/in/**,!/in/admin/**"
PLACEHOLDER = "no-key-needed"
CURL = os.path.realpath(shutil.which("curl") or "/usr/bin/curl")


@dataclasses.dataclass
class Site:
    """A line of the list. The origin demands `need`; the secret belongs in `place` of a request."""

    name: str
    line: str
    need: str = ""
    place: str = ""
    tls: bool = True
    secret: str = ""

    @property
    def host(self):
        return f"{self.name}.test.localhost"

    @property
    def limits_paths(self):
        return "paths=" in self.line

    @property
    def denies(self):
        return "deny=yes" in self.line

    @property
    def redacts(self):
        return "redact=yes" in self.line

    @property
    def ignores_case(self):
        return "case=ignore" in self.line

    @property
    def methods(self):
        found = re.search(r"methods=(\S+)", self.line)
        return found and found[1].encode().split(b",")


def sites():
    one = [
        Site("paths", f"answer=basic {LIMITS} deny=yes", "basic", "authorization"),
        Site("inject", f"inject=header:X-Api-Key: {{secret}} {LIMITS}", place="x-api-key"),
        Site("fold", f"inject=query:key={{secret}} {PATHS} case=ignore deny=yes", place="query"),
        Site("for", "inject=header:Authorization: Bearer {secret} for=token:good", place="authorization"),
        Site("fordeny", "answer=basic for=token:good deny=yes", "basic", "authorization"),
        Site("header", "inject=header:X-Api-Key: {secret} redact=yes", place="x-api-key"),
        Site("query", "inject=query:key={secret} redact=yes", place="query"),
        Site("cookie", "inject=cookie:sid={secret} redact=yes", place="cookie"),
        Site(
            "bearer",
            f"inject=header:Authorization: Bearer {{secret}} placeholder={PLACEHOLDER} redact=yes",
            place="authorization",
        ),
        Site("placed", f"inject=query:key={{secret}} placeholder={PLACEHOLDER} redact=yes", place="query"),
        Site("basic", "answer=basic cross-site=https://app.test.localhost", "basic", "authorization"),
        Site("page", "inject=header:X-Api-Key: {secret} cross-site=https://app.test.localhost", place="x-api-key"),
    ]
    two = [dataclasses.replace(site, name="two-" + site.name) for site in one]
    return (
        one
        + two
        + [
            Site("ntlm", "answer=ntlm domain=ACME for=token:good", "ntlm"),
            Site("exe", f"inject=header:X-Api-Key: {{secret}} for=exe:{CURL}", place="x-api-key"),
            Site("plain", f"answer=basic plaintext=yes {PATHS} deny=yes", "basic", "authorization", tls=False),
            Site("plainfor", "answer=basic plaintext=yes for=token:good deny=yes", "basic", "authorization", tls=False),
        ]
    )


def loosened(line):
    """The line without its limits: what the attacks must find then."""
    line = re.sub(r" ?(methods|paths|case|for|deny|redact)=\S+", "", line)
    return line


class World:
    def __init__(self, executable, folder, anchor, origin, all_sites):
        self.executable, self.folder, self.sites = executable, folder, all_sites
        self.home = os.path.join(folder, "home")
        self.log = os.path.join(folder, "access.log")
        self.errors = os.path.join(folder, "serve.err")
        self.tokens = {name: f"kanarie-token-{name}-{secrets.token_hex(8)}" for name in ("good", "bad")}
        os.makedirs(os.path.join(self.home, "Certs", "anchors"))
        os.makedirs(os.path.join(self.home, "AllowedSites"))
        shutil.copy(anchor, os.path.join(self.home, "Certs", "anchors", "origin.pem"))
        lines = []
        for site in all_sites:
            site.secret = f"kanarie-{site.name.replace('-', '')}-{secrets.token_hex(10)}"
            where = f"https://{site.host}:{origin.tls_port}" if site.tls else f"http://{site.host}:{origin.plain_port}"
            lines.append(f"{where} {site.line} credential={site.name}\n")
        self.write("home/AllowedSites/test.sites", "".join(lines))
        self.write("tokens", "".join(f"{name} {token}\n" for name, token in self.tokens.items()), 0o600)
        for site in all_sites:
            if site.need:
                self.run("credential", "set", site.name, "--user", "jdoe", "--password-stdin", text=site.secret)
            else:
                self.run("credential", "set", site.name, "--token-stdin", text=site.secret)
        self.server = None

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    @property
    def process_options(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": self.folder, "LC_ALL": "C.UTF-8"}
        return {"env": environment, "cwd": self.folder}

    def run(self, *arguments, text=""):
        place = arguments.index("--") if "--" in arguments else len(arguments)
        command = [self.executable, *arguments[:place], "--home", self.home, *arguments[place:]]
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, **self.process_options)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode()

    def serve(self):
        with open(self.errors, "wb") as errors:
            self.server = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig",
                    "TERM",
                    self.executable,
                    "serve",
                    "--home",
                    self.home,
                    "--listen",
                    "127.0.0.1:0",
                    "--access-log",
                    self.log,
                    "--client-token-file",
                    os.path.join(self.folder, "tokens"),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                **self.process_options,
            )
        self.port = int(self.server.stdout.readline().decode().rpartition(":")[2] or 0)
        self.anchor = os.path.join(self.folder, "ca.pem")
        self.write("ca.pem", self.run("ca", "export"))

    def stop(self):
        self.server.terminate()
        self.server.wait(20)

    def stops_well(self):
        """Whether the proxy was still there at the end, and left no other way than it should."""
        if self.server.poll() is not None:
            return False
        self.stop()
        return self.server.returncode == 0

    def secrets(self):
        """What must not be seen: name and text."""
        return [(site.name, site.secret) for site in self.sites] + list(self.tokens.items())

    def traces(self):
        """What the proxy has written about all this."""
        time.sleep(0.2)
        for path in (self.log, self.errors):
            with open(path, "rb") as file:
                yield os.path.basename(path), file.read()

    def malformed_lines(self):
        """Lines of the access log that are not one object of JSON in visible characters."""
        with open(self.log, "rb") as file:
            for line in file.read().split(b"\n")[:-1]:
                try:
                    entry = json.loads(line)
                    good = {"time", "id", "method", "site", "status"} <= set(entry) or "lost" in entry
                except ValueError:
                    good = False
                if not good or any(octet < 0x20 or octet == 0x7F for octet in line):
                    yield line
