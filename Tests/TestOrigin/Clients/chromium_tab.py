# SPDX-License-Identifier: Apache-2.0
"""Debian's headless Chromium without a proxy, and its tabs, controlled through the DevTools protocol."""

import base64
import contextlib
import json
import os
import subprocess
import time

from websockets.sync.client import connect

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--disable-extensions", "--disable-domain-reliability", "--disable-features=OptimizationHints,MediaRouter",
    "--no-proxy-server", "--window-size=1200,900", "--remote-debugging-port=0", "--enable-precise-memory-info",
    # Names of the Internet that lead to this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1",
]  # fmt: skip
PATIENCE = 240


class Chromium:
    def __init__(self, folder):
        self.folder = folder
        self.sockets = contextlib.ExitStack()
        profile = os.path.join(folder, "profile")
        with open(os.path.join(folder, "chromium.log"), "wb") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"], stdout=log, stderr=log,
                env={**os.environ, "HOME": folder},
            )  # fmt: skip
        self.place = until(lambda: self.address(os.path.join(profile, "DevToolsActivePort")), "chromium has started")

    def address(self, file):
        """The DevTools address, which Chromium writes to its profile when it is ready."""
        if self.process.poll() is not None:
            raise RuntimeError("chromium has ended")
        try:
            with open(file, encoding="utf-8") as lines:
                port, path = lines.read().split()
                return f"ws://127.0.0.1:{port}{path}"
        except (FileNotFoundError, ValueError):
            return None

    def tab(self):
        return Tab(self.sockets.enter_context(connect(self.place, max_size=None, proxy=None)), self.folder)

    def close(self):
        self.sockets.close()
        self.process.terminate()
        self.process.wait(60)


def until(condition, claim, seconds=PATIENCE):
    """Waits until `condition` returns a value that counts as true, and returns it."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never: {claim}")
        time.sleep(0.02)


class Tab:
    KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32}

    def __init__(self, socket, folder):
        self.socket, self.folder = socket, folder
        self.count = 0
        self.events = []
        self.session = None
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility"]:
            self.call(f"{domain}.enable")
        # As if the person were looking at it.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            reply = json.loads(self.socket.recv(timeout=PATIENCE))
            if "method" in reply:
                self.events.append(reply)
            elif reply["id"] == message["id"]:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def named(self, method):
        return [event["params"] for event in self.events if event["method"] == method]

    def open(self, url):
        """Returns the status of the response; None if the address differs in its fragment only."""
        self.events = []
        loader = self.call("Page.navigate", url=url).get("loaderId")
        if not loader:
            return None
        until(lambda: self.run("document.readyState === 'complete'"), f"{url} is loaded")
        found = [event for event in self.named("Network.responseReceived") if event["requestId"] == loader]
        return found[0]["response"]["status"] if found else None

    def run(self, expression, is_strict=False):
        """The value of an expression of JavaScript, after its promise. `is_strict`: under the page's policy."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=not is_strict,
        )  # fmt: skip
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"].get("exception", {}).get("description")))
        return result["result"].get("value")

    def until(self, expression, seconds=PATIENCE):
        def holds():
            try:
                return self.run(expression)
            except RuntimeError:
                # The page is another one just now.
                return None

        return until(holds, expression, seconds)

    def press(self, key, shift=False):
        text = {"Enter": "\r", "Space": " "}.get(key)
        code = " " if key == "Space" else key
        common = {"key": code, "code": key, "windowsVirtualKeyCode": self.KEYS[key], "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def look(self, width, height, scheme):
        """The size of the window, and the colours that the person prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wishes.items()]
        )
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def picture(self, name, full=False):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=full)["data"]
        with open(os.path.join(self.folder, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.session = None
        self.call("Target.closeTarget", targetId=self.target)
        self.socket.close()
