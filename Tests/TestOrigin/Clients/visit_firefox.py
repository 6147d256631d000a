# SPDX-License-Identifier: Apache-2.0
"""visit_firefox.py HOME PROFILE PROXY: as visit_chromium.py, in headless Firefox. With PROXY `-`, a URL may have a user
name and a password, with which the person signs in."""

import json
import os
import subprocess
import sys

if sys.argv[3] == "-":
    sys.argv[3] = "http://127.0.0.1:1"
    IS_DIRECT = True
else:
    IS_DIRECT = False

import browse_firefox

browse_firefox.PREFERENCES |= {
    # No questions for passwords of what pages load, which would wait for a person.
    "network.auth.subresource-http-auth-allow": 0,
    "network.proxy.type": 0 if IS_DIRECT else 1,
}


class Driver(browse_firefox.Marionette):
    def call(self, command, **parameters):
        if command == "WebDriver:NewSession":
            parameters = {"acceptInsecureCerts": True, "unhandledPromptBehavior": "dismiss"}
        return super().call(command, **parameters)

    def visit(self, url):
        # A form whose site wants a password waits for a person, who does not come.
        self.call("WebDriver:SetTimeouts", pageLoad=5_000 if "/top?" in url and "POST" in url else 40_000)
        for _ in range(3):
            _, error = self.call("WebDriver:Navigate", url=url)
            if not error or error["error"] != "unexpected alert open":
                return error
        return error


HOME, PROFILE = sys.argv[1:3]
with open(f"{PROFILE}/user.js", "w", encoding="utf-8") as file:
    for key, value in browse_firefox.PREFERENCES.items():
        file.write(f"user_pref({json.dumps(key)}, {json.dumps(value)});\n")
with open(f"{HOME}/firefox.log", "wb") as log:
    firefox = subprocess.Popen(
        ["/usr/bin/firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", PROFILE],
        stdout=log, stderr=log, env={**os.environ, "HOME": HOME},
    )  # fmt: skip
try:
    driver = Driver(browse_firefox.port(firefox))
    for line in sys.stdin:
        print("visited", line.strip(), driver.visit(line.strip()), flush=True)
finally:
    firefox.terminate()
    firefox.wait(20)
