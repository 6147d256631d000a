# SPDX-License-Identifier: Apache-2.0
"""visit_chromium.py HOME PROXY USER:PASSWORD: loads the pages whose URLs are the lines of the standard input in
Debian's headless Chromium, one after the other, in one tab, and accepts every certificate.

PROXY may be `-` for none, and so may USER:PASSWORD. With it, Chromium answers each question for a password for the page
itself with them, as a person would who signs in; it asks no questions for what pages load.
"""

import json
import os
import subprocess
import sys
import time

from websockets.sync.client import connect

HOME, PROXY, ACCOUNT = sys.argv[1:]
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-extensions", "--disable-domain-reliability", "--disable-features=OptimizationHints,MediaRouter",
    f"--user-data-dir={HOME}/profile", "--ignore-certificate-errors", "--remote-debugging-port=0",
    *([f"--proxy-server={PROXY}", "--proxy-bypass-list=<-loopback>"] if PROXY != "-" else ["--no-proxy-server"]),
    "about:blank",
]  # fmt: skip


class Tab:
    def __init__(self, socket):
        self.socket = socket
        self.count = 0
        self.session = None
        self.is_loaded = False
        self.is_leading = False
        self.main = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.main, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Page.setDownloadBehavior", behavior="deny")
        self.call("Fetch.enable", handleAuthRequests=True)

    def send(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        return self.count

    def call(self, method, **parameters):
        number = self.send(method, **parameters)
        while True:
            reply = self.receive(60)
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def receive(self, seconds):
        reply = json.loads(self.socket.recv(timeout=seconds))
        method, parameters = reply.get("method"), reply.get("params")
        if method == "Fetch.requestPaused":
            self.send("Fetch.continueRequest", requestId=parameters["requestId"])
        if method == "Fetch.authRequired":
            self.send(
                "Fetch.continueWithAuth", requestId=parameters["requestId"],
                authChallengeResponse=self.answer(parameters),
            )  # fmt: skip
        if method == "Page.frameNavigated" and parameters["frame"]["id"] == self.main:
            self.is_loaded = False
            self.is_leading = self.is_leading and "/top?" in parameters["frame"]["url"]
        # A page that leads to another may be loaded before the browser has left it. What is no page is downloaded, and
        # nothing is loaded then.
        if method == "Page.loadEventFired" and not self.is_leading or method == "Page.downloadWillBegin":
            self.is_loaded = True
        return reply

    def answer(self, parameters):
        is_page = parameters["resourceType"] == "Document" and parameters["frameId"] == self.main
        # The person signs in at the site, and not because another page leads there.
        if ACCOUNT == "-" or not is_page or not self.signs_in:
            return {"response": "CancelAuth"}
        user, password = ACCOUNT.split(":", 1)
        if parameters["authChallenge"]["scheme"].lower() == "ntlm":
            user = f"ACME\\{user}"
        return {"response": "ProvideCredentials", "username": user, "password": password}

    def visit(self, url):
        self.is_loaded = False
        self.is_leading = "/top?" in url
        self.signs_in = "/top?" not in url
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 180
        while not self.is_loaded and time.monotonic() < end:
            try:
                self.receive(1)
            except TimeoutError:
                continue


def place(chromium):
    """The DevTools address, which Chromium writes to its profile when it is ready."""
    for _ in range(600):
        try:
            with open(f"{HOME}/profile/DevToolsActivePort", encoding="utf-8") as file:
                port, path = file.read().split()
                return f"ws://127.0.0.1:{port}{path}"
        except (FileNotFoundError, ValueError):
            if chromium.poll() is not None:
                break
            time.sleep(0.05)
    with open(f"{HOME}/chromium.log", encoding="utf-8") as said:
        sys.exit("chromium did not start: " + said.read())


with open(f"{HOME}/chromium.log", "wb") as log:
    chromium = subprocess.Popen(
        ["/usr/bin/chromium", *FLAGS], stdout=log, stderr=log, env={**os.environ, "HOME": HOME}
    )
try:
    with connect(place(chromium), max_size=None, proxy=None) as socket:
        tab = Tab(socket)
        for line in sys.stdin:
            tab.visit(line.strip())
            print("visited", line.strip(), flush=True)
finally:
    chromium.terminate()
    chromium.wait(10)
