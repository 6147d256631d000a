# SPDX-License-Identifier: Apache-2.0
"""A person with Debian's headless Chromium, in place of a browser's program.

Usage: sign_in.py FOLDER [FLAG ...] URL    Opens URL with Chromium's flags FLAG, runs the JavaScript in FOLDER/person.js
once in each page, and ends at Countersign's last page: its address and text are then in FOLDER/last.json, a picture is
in FOLDER/last.png. FOLDER is Chromium's HOME. Progress and errors are in FOLDER/log.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import time

from websockets.sync.client import connect

FOLDER, *WORDS = sys.argv[1:]
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-extensions", "--disable-domain-reliability", "--disable-features=OptimizationHints,MediaRouter",
    "--window-size=900,600", "--no-proxy-server", "--remote-debugging-port=0",
]  # fmt: skip
LAST = "You can close this window."
LOG = open(f"{FOLDER}/log", "a", buffering=1, encoding="utf-8")


def say(*words):
    print(*words, file=LOG)


class Tab:
    """The page that was opened from the command line, controlled through the DevTools protocol."""

    def __init__(self, socket):
        self.socket, self.count, self.session = socket, 0, None
        target = wait(self.target)
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def target(self):
        pages = [page for page in self.call("Target.getTargets")["targetInfos"] if page["type"] == "page"]
        return next((page["targetId"] for page in pages if page["url"].startswith("http")), None)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            reply = json.loads(self.socket.recv(timeout=60))
            if reply.get("id") == self.count:
                return reply.get("result") or {}

    def evaluate(self, script):
        """The value, or None if the page has gone meanwhile."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True).get("result", {}).get("value")


def wait(condition, seconds=100):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    say("nothing has happened for too long")
    sys.exit(1)


def place(profile):
    """The DevTools address, which Chromium writes to its profile when it is ready."""
    try:
        with open(f"{profile}/DevToolsActivePort", encoding="utf-8") as file:
            port, path = file.read().split()
            return f"ws://127.0.0.1:{port}{path}"
    except (FileNotFoundError, ValueError):
        return None


def sign_in(tab):
    with open(f"{FOLDER}/person.js", encoding="utf-8") as file:
        person = file.read()
    seen = set()

    def has_come_back():
        text = tab.evaluate("document.readyState == 'complete' ? document.body.innerText : ''")
        address = tab.evaluate("location.href") or ""
        if text and LAST in text:
            return {"address": address, "text": text.strip()}
        if text is not None and address.startswith("http") and address not in seen:
            if tab.evaluate("document.readyState") == "complete":
                seen.add(address)
                say("page", address.split("?")[0])
                tab.evaluate(person)
        return None

    return wait(has_come_back)


def main():
    # The end of the sign-in ends a private window. The picture comes first.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    given = [word.split("=", 1)[1] for word in WORDS if word.startswith("--user-data-dir=")]
    profile = given[0] if given else f"{FOLDER}/profile"
    own = [] if given else [f"--user-data-dir={profile}"]
    say("chromium", *[word.split("?")[0] for word in WORDS])
    chromium = subprocess.Popen(
        ["/usr/bin/chromium", *FLAGS, *own, *WORDS], stdout=LOG, stderr=LOG, env={**os.environ, "HOME": FOLDER},
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))  # fmt: skip
    try:
        with connect(wait(lambda: place(profile)), max_size=None, proxy=None) as socket:
            tab = Tab(socket)
            page = sign_in(tab)
            with open(f"{FOLDER}/last.png", "wb") as picture:
                picture.write(base64.b64decode(tab.call("Page.captureScreenshot")["data"]))
            with open(f"{FOLDER}/last.part", "w", encoding="utf-8") as file:
                json.dump(page, file)
            os.rename(f"{FOLDER}/last.part", f"{FOLDER}/last.json")
    finally:
        chromium.terminate()
        chromium.wait(10)


main()
