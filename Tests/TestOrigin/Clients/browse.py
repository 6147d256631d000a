# SPDX-License-Identifier: Apache-2.0
"""browse.py HOME PROXY NAME=URL...: opens pages in Debian's headless Chromium through PROXY, with HOME's NSS database.

With !URL, clicks "Proceed" on the warning, and opens the page again in a new tab: these pages are called NAME-proceeded
and NAME-again. Prints one JSON object per page: name; error (Chromium's, such as net::ERR_CERT_AUTHORITY_INVALID, or
null); text (of the document); state (of the lock icon: secure, insecure-broken and so on); issuer (of the server's
certificate); prompts (how often Chromium wanted to ask for a password). Writes a screenshot of each page to
HOME/NAME.png.
"""

import base64
import json
import os
import subprocess
import sys
import time

from websockets.sync.client import connect

HOME, PROXY = sys.argv[1:3]
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-extensions", "--disable-domain-reliability", "--disable-features=OptimizationHints,MediaRouter",
    "--window-size=900,600", f"--user-data-dir={HOME}/profile", f"--proxy-server={PROXY}",
    # By default, names for loopback addresses, which the test sites have, bypass the proxy.
    "--proxy-bypass-list=<-loopback>", "--remote-debugging-port=0", "about:blank",
]  # fmt: skip


class Tab:
    """One page, controlled through the DevTools protocol."""

    def __init__(self, socket):
        self.socket = socket
        self.count = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Security"]:
            self.call(f"{domain}.enable")
        self.call("Fetch.enable", handleAuthRequests=True)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        number = self.count
        while True:
            reply = self.receive()
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def receive(self):
        reply = json.loads(self.socket.recv(timeout=60))
        if "method" in reply:
            self.events.append(reply)
            parameters = reply["params"]
            if reply["method"] == "Fetch.requestPaused":
                self.notify("Fetch.continueRequest", requestId=parameters["requestId"])
            if reply["method"] == "Fetch.authRequired":
                answer = {"response": "CancelAuth"}
                self.notify("Fetch.continueWithAuth", requestId=parameters["requestId"], authChallengeResponse=answer)
        return reply

    def notify(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters, "sessionId": self.session}
        self.socket.send(json.dumps(message))

    def named(self, method):
        return [event["params"] for event in self.events if event["method"] == method]

    def open(self, name, url):
        self.events = []
        error = self.call("Page.navigate", url=url).get("errorText")
        if error == "net::ERR_ABORTED":
            sys.exit(f"{url} is not a page")
        return self.shown(name, error)

    def proceed(self, name):
        """Clicks "Advanced" and "Proceed"."""
        self.events = []
        for button in ["details-button", "proceed-link"]:
            self.call("Runtime.evaluate", expression=f"document.getElementById('{button}').click()")
        while not self.named("Page.frameNavigated"):
            self.receive()
        frame = self.named("Page.frameNavigated")[-1]["frame"]
        return self.shown(name, "the warning again" if frame.get("unreachableUrl") else None)

    def shown(self, name, error):
        while not self.named("Page.loadEventFired") or not self.named("Security.visibleSecurityStateChanged"):
            self.receive()
        shown = self.call("Runtime.evaluate", expression="document.documentElement.innerText")["result"]["value"]
        with open(f"{HOME}/{name}.png", "wb") as picture:
            picture.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
        state = self.named("Security.visibleSecurityStateChanged")[-1]["visibleSecurityState"]
        return {
            "name": name, "error": error, "text": shown, "state": state["securityState"],
            "issuer": (state.get("certificateSecurityState") or {}).get("issuer"),
            "prompts": len(self.named("Fetch.authRequired")),
        }  # fmt: skip


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
    for argument in sys.argv[3:]:
        name, url = argument.split("=", 1)
        with connect(place(chromium), max_size=None, proxy=None) as socket:
            tab = Tab(socket)
            print(json.dumps(tab.open(name, url.removeprefix("!"))), flush=True)
            if url.startswith("!"):
                print(json.dumps(tab.proceed(f"{name}-proceeded")), flush=True)
                print(json.dumps(Tab(socket).open(f"{name}-again", url[1:])), flush=True)
finally:
    chromium.terminate()
    chromium.wait(10)
