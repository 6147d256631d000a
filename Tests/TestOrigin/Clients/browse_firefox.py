# SPDX-License-Identifier: Apache-2.0
"""browse_firefox.py HOME PROFILE PROXY NAME=URL...: opens pages in headless Firefox through PROXY, with a profile.

With !URL, clicks "Proceed" on the warning, and opens the page again: these pages are called NAME-proceeded and
NAME-again. Prints one JSON object per page: name; error (Firefox's, such as SEC_ERROR_UNKNOWN_ISSUER, or null); text
(of the document). Writes a screenshot of each page to HOME/NAME.png.

Speaks the Marionette protocol: a JSON array with its length before it.
"""

import base64
import json
import os
import socket
import subprocess
import sys
import time

HOME, PROFILE, PROXY = sys.argv[1:4]
PROXY_HOST, PROXY_PORT = PROXY.removeprefix("http://").split(":")
PREFERENCES = {
    "network.proxy.type": 1, "network.proxy.http": PROXY_HOST, "network.proxy.http_port": int(PROXY_PORT),
    "network.proxy.ssl": PROXY_HOST, "network.proxy.ssl_port": int(PROXY_PORT),
    # By default, names for loopback addresses, which the test sites have, bypass the proxy.
    "network.proxy.allow_hijacking_localhost": True, "network.proxy.no_proxies_on": "",
    "marionette.port": 0, "app.update.enabled": False, "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False, "toolkit.telemetry.enabled": False, "app.normandy.enabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,", "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False, "extensions.update.enabled": False,
    "dom.security.https_first": False,
    "devtools.jsonview.enabled": False,
}  # fmt: skip

# The part of the warning that has the buttons.
CARD = "document.querySelector('net-error-card').shadowRoot"


class Marionette:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.input = self.socket.makefile("rb")
        self.count = 0
        self.read()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})

    def read(self):
        digits = b""
        while not digits.endswith(b":"):
            digit = self.input.read(1)
            if not digit:
                raise RuntimeError("firefox closed the connection")
            digits += digit
        return json.loads(self.input.read(int(digits[:-1])))

    def call(self, command, **parameters):
        """Returns the result and the error."""
        self.count += 1
        message = json.dumps([0, self.count, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        reply = self.read()
        return reply[3], reply[2]

    def run(self, script):
        result, error = self.call("WebDriver:ExecuteScript", script=script, args=[], newSandbox=True)
        if error:
            raise RuntimeError(error["message"])
        return result["value"]

    def until(self, script):
        for _ in range(600):
            try:
                value = self.run(f"return {script};")
            except RuntimeError:
                value = None
            if value:
                return value
            time.sleep(0.05)
        raise RuntimeError(f"never true: {script}")

    def open(self, name, url):
        _, error = self.call("WebDriver:Navigate", url=url)
        if error and error["error"] != "insecure certificate":
            sys.exit(f"{url}: {error['message']}")
        if not error:
            return self.shown(name, None)
        self.until(f"({CARD}.querySelector('#advanced-button').click(), true)")
        code = self.until(f"{CARD}.querySelector('#errorCode').dataset.l10nArgs")
        return self.shown(name, json.loads(code)["error"])

    def proceed(self, name):
        """Clicks "Proceed" below "Advanced", which ``open`` has clicked. The button ignores clicks at first."""
        click = f"({CARD}.querySelector('#exception-button')?.click(), false)"
        self.until(f"document.querySelector('net-error-card') ? {click} : document.readyState == 'complete'")
        return self.shown(name, None)

    def shown(self, name, error):
        # While Firefox leaves a page for another, there is no picture of it.
        for _ in range(600):
            picture, failure = self.call("WebDriver:TakeScreenshot", full=False, hash=False)
            if not failure:
                break
            time.sleep(0.05)
        else:
            raise RuntimeError(failure["message"])
        with open(f"{HOME}/{name}.png", "wb") as file:
            file.write(base64.b64decode(picture["value"]))
        text = self.run("return document.documentElement.innerText")
        print(json.dumps({"name": name, "error": error, "text": text}), flush=True)


def port(firefox):
    for _ in range(1200):
        try:
            with open(f"{PROFILE}/MarionetteActivePort", encoding="utf-8") as file:
                return int(file.read())
        except (FileNotFoundError, ValueError):
            if firefox.poll() is not None:
                break
            time.sleep(0.05)
    with open(f"{HOME}/firefox.log", encoding="utf-8") as said:
        sys.exit("firefox did not start: " + said.read())


if __name__ == "__main__":
    with open(f"{PROFILE}/user.js", "w", encoding="utf-8") as file:
        for key, value in PREFERENCES.items():
            file.write(f"user_pref({json.dumps(key)}, {json.dumps(value)});\n")
    with open(f"{HOME}/firefox.log", "wb") as log:
        firefox = subprocess.Popen(
            ["/usr/bin/firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", PROFILE],
            stdout=log, stderr=log, env={**os.environ, "HOME": HOME, "MOZ_HEADLESS_WIDTH": "900"},
        )  # fmt: skip
    try:
        driver = Marionette(port(firefox))
        for argument in sys.argv[4:]:
            name, url = argument.split("=", 1)
            driver.open(name, url.removeprefix("!"))
            if url.startswith("!"):
                driver.proceed(f"{name}-proceeded")
                driver.open(f"{name}-again", url[1:])
    finally:
        firefox.terminate()
        firefox.wait(20)
