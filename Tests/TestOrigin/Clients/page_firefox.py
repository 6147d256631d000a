# SPDX-License-Identifier: Apache-2.0
"""A short visit of the page in headless Firefox."""

import base64
import os
import subprocess
import sys

NARROW = 500
"""The narrowest window of Firefox."""


def visit(serve, folder, site):
    profile = os.path.join(folder, "firefox")
    os.makedirs(profile)
    # The module reads its arguments.
    sys.argv[1:4] = [folder, profile, "http://127.0.0.1:1"]
    import browse_firefox

    preferences = {**browse_firefox.PREFERENCES, "network.proxy.type": 0, "ui.prefersReducedMotion": 1}
    with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as file:
        for key, value in preferences.items():
            file.write(f"user_pref({browse_firefox.json.dumps(key)}, {browse_firefox.json.dumps(value)});\n")
    with open(os.path.join(folder, "firefox.log"), "wb") as log:
        firefox = subprocess.Popen(
            ["/usr/bin/firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", profile],
            stdout=log, stderr=log, env={**os.environ, "HOME": folder, "MOZ_HEADLESS_WIDTH": str(NARROW)},
        )  # fmt: skip
    try:
        look(browse_firefox.Marionette(browse_firefox.port(firefox)), serve, folder, site)
    finally:
        firefox.terminate()
        firefox.wait(60)


def look(driver, serve, folder, site):
    _, error = driver.call("WebDriver:Navigate", url=serve.link())
    assert not error, error
    driver.until("document.getElementById('health').textContent === '✓ Running'")
    assert driver.run("return location.hash") == ""
    # Until the stream has begun, nothing is told.
    while not driver.run("return document.querySelector('#rows tr')?.textContent.includes('basic with enrollment')"):
        assert serve.status(f"{site}/echo") == "200"
    wide = driver.run("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{wide} too wide"
    client = serve.start(f"{site}/echo", "-d", "")
    driver.until("document.querySelector('#approvals button')?.checkVisibility()")
    driver.run("document.querySelector('#approvals button').focus()")
    # Enter.
    driver.call("WebDriver:PerformActions", actions=[
        {"type": "key", "id": "keyboard", "actions": [
            {"type": "keyDown", "value": "\ue007"}, {"type": "keyUp", "value": "\ue007"}]}])  # fmt: skip
    assert client.communicate(timeout=240)[0] == "200"
    picture, _ = driver.call("WebDriver:TakeScreenshot", full=True, hash=False)
    with open(os.path.join(folder, "firefox.png"), "wb") as file:
        file.write(base64.b64decode(picture["value"]))
