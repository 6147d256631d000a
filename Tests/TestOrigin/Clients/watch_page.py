# SPDX-License-Identifier: Apache-2.0
"""watch_page.py FOLDER EXECUTABLE HOME SITE UNTRUSTED: opens the page of a running proxy in headless Chromium, and
does there what a person does, and what others may try. Firefox gets a short visit.

HOME lists SITE with answer=basic and approve=write; `other` in place of `seen` in its name with a scheme that it does
not offer; and UNTRUSTED, whose certificate does not verify. Prints `ok NAME` or
`failed NAME: REASON` for each check, and `done` at the end. Writes screenshots to FOLDER.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import traceback

import page_attacks
import page_firefox
from chromium_tab import PATIENCE, Chromium, until
from page_stand_in import StandIn

FOLDER, EXECUTABLE, HOME, SITE, UNTRUSTED = sys.argv[1:]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": FOLDER, "LANG": "C.UTF-8"}
CLIENTS = os.path.dirname(os.path.abspath(__file__))
ROW = "document.querySelector('#rows tr:first-child')"
FOCUSED = "document.activeElement"


class Serve:
    """The proxy, and clients of it."""

    def __init__(self, port=0):
        self.log = os.path.join(FOLDER, "serve.log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [EXECUTABLE, "serve", "--listen", f"127.0.0.1:{port}", "--home", HOME, "--no-notify",
                 "--parent", "http://parent.example:8080,direct"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=ENVIRONMENT, text=True,
            )  # fmt: skip
        self.first = self.process
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.origin = f"http://127.0.0.1:{self.port}"
        self.anchor = os.path.join(FOLDER, "anchor.pem")
        with open(self.anchor, "w", encoding="utf-8") as file:
            file.write(self.command("ca", "export"))

    def command(self, *arguments):
        return subprocess.run(
            [EXECUTABLE, *arguments, "--home", HOME], env=ENVIRONMENT, text=True, capture_output=True, check=True
        ).stdout

    def link(self):
        return self.command("ui", "--print").strip()

    def start(self, url, *flags, program="/usr/bin/curl"):
        return subprocess.Popen(
            [program, "-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-x", self.origin, "--cacert", self.anchor,
             *flags, url], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def status(self, url, *flags, program="/usr/bin/curl"):
        return self.start(url, *flags, program=program).communicate(timeout=PATIENCE)[0]

    @property
    def pid(self):
        return json.loads(self.command("status", "--json"))["server"]["pid"]

    def restart(self):
        """Another process takes over."""
        before = self.pid
        os.kill(before, signal.SIGUSR2)
        until(lambda: self.pid != before, "another process has taken over")

    def stop(self, number=signal.SIGTERM):
        os.kill(self.pid, number)
        self.process.wait(PATIENCE)
        until(lambda: not self.is_answering(), "the proxy ends")

    def is_answering(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


def hears(tab, selector):
    """The text of a live region that a screen reader reads out."""
    return tab.run(f"document.querySelector({selector!r}).textContent")


def tab_to(tab, expression, limit=200):
    """Presses the tabulator until the expression about the focused element is true. Returns how often."""
    for count in range(limit):
        if tab.run(expression):
            return count
        tab.press("Tab")
    raise AssertionError(f"the keyboard does not reach {expression}")


# MARK: What a person does


def opens_by_the_link(serve, tab):
    link = serve.link()
    assert tab.open(link) == 200
    tab.until("document.getElementById('health').textContent === '✓ Running'")
    assert tab.run("location.hash") == "", "the token leaves the address"
    assert tab.run("history.length") <= 2, "and the history"
    return link


def a_used_link_does_not_open(serve, chromium, link):
    other = chromium.tab()
    assert other.open(link) == 200
    other.until("!document.getElementById('ended').hidden")
    said = hears(other, "#ended")
    assert "countersign ui" in said and "used before" in said, said
    assert not other.run("document.getElementById('content').checkVisibility()")
    assert other.run("sessionStorage.length") == 0
    # In the same tab, a new link opens it.
    other.open(serve.link())
    other.until("document.getElementById('health').textContent === '✓ Running'")
    other.close()


def shows_a_request_with_its_failing_check(serve, tab):
    assert serve.status(f"{SITE}/echo") == "200"
    tab.until(f"{ROW}?.textContent.includes('basic with enrollment')")
    assert serve.status(f"{SITE.replace('seen.', 'other.')}/echo?secret-query") == "401"
    tab.until("document.querySelector('#rows .checks .bad')")
    said = tab.run("document.querySelector('#rows .checks .bad').closest('tr').textContent")
    for part in ["✓ site", "✗ scheme failed", "– credential", "401", "curl"]:
        assert part in said, said
    assert "secret-query" not in tab.run("document.documentElement.innerHTML"), "no view has a path"


def filters(tab):
    def shown():
        return tab.run("[...document.querySelectorAll('#rows tr')].map(row => row.cells[2].textContent)")

    everything = len(shown())
    assert any("seen." in row for row in shown()) and any("other." in row for row in shown())
    tab.run("document.getElementById('filter-site').focus()")
    tab.type("other.")
    tab.until("document.querySelectorAll('#rows tr').length > 0")
    assert all("other." in row for row in shown()), shown()
    tab.run("document.getElementById('filters').reset()")
    tab.until(f"document.querySelectorAll('#rows tr').length >= {everything}")
    choose = "(node => {{ node.value = {!r}; node.dispatchEvent(new Event('input', {{ bubbles: true }})) }})"
    for cause, part in [("refused: scheme", "✗ scheme failed"), ("answered", "basic with enrollment")]:
        tab.run(f"{choose.format(cause)}(document.getElementById('filter-cause'))")
        texts = tab.run("[...document.querySelectorAll('#rows tr')].map(row => row.textContent)")
        assert texts and all(part in text for text in texts), (cause, texts)
    tab.run("document.getElementById('filters').reset()")
    tab.until(f"document.querySelectorAll('#rows tr').length >= {everything}")
    tab.run("document.getElementById('filter-client').focus()")
    tab.type("no such program")
    tab.until("document.querySelectorAll('#rows tr').length === 0")
    tab.run("document.getElementById('filters').reset()")
    tab.until(f"document.querySelectorAll('#rows tr').length >= {everything}")


def approves_by_the_keyboard(serve, tab):
    tab.run("scrollTo(0, 0), document.activeElement.blur()")
    client = serve.start(f"{SITE}/echo", "-d", "")
    tab.until("document.querySelector('#approvals button')?.checkVisibility()")
    said = hears(tab, "#approval-alert")
    assert "wants to send POST to" in said and "curl" in said and "enrollment" in said, said
    assert tab.run("document.title").startswith("(1) ")
    assert client.poll() is None
    tab.picture("approval")
    tab_to(tab, f"{FOCUSED}.textContent === 'Allow once'")
    tab.press("Enter")
    assert client.communicate(timeout=PATIENCE)[0] == "200"
    tab.until("document.getElementById('approvals').hidden")
    assert tab.run(f"{FOCUSED}.id") == "main", "the focus is not lost"
    assert "allowed once" in hears(tab, "#approval-notes")
    # And another is denied with the other key.
    client = serve.start(f"{SITE}/echo", "-X", "DELETE")
    tab.until("document.querySelector('#approvals button')?.checkVisibility()")
    tab_to(tab, f"{FOCUSED}.textContent === 'Deny'")
    tab.press("Space")
    assert client.communicate(timeout=PATIENCE)[0] == "403"
    tab.until("document.getElementById('approvals').hidden")


def allows_a_certificate(serve, tab):
    assert serve.status(f"{UNTRUSTED}/echo") != "200"
    tab.until("document.querySelector('#questions button')?.checkVisibility()")
    tab.run("document.querySelector('#questions button').focus()")
    tab.press("Enter")
    tab.until("document.getElementById('confirm').open")
    assert tab.run(f"{FOCUSED}.textContent") == "Cancel", "the safe answer has the focus"
    shown = tab.run("[...document.querySelectorAll('#confirm code')].map(code => code.textContent).join('')")
    assert len(shown) == 64 and int(shown, 16), shown
    tab.picture("certificate")
    tab.press("Escape")
    tab.until("!document.getElementById('confirm').open")
    assert tab.run(f"{FOCUSED}.textContent") == "Review", "the focus returns"
    tab.press("Enter")
    tab_to(tab, f"{FOCUSED}.id === 'confirm-yes'", 5)
    tab.press("Enter")
    tab.until("document.getElementById('waiting').hidden")
    # Its answer is another decision: `trust allow --answer`.
    until(lambda: serve.status(f"{UNTRUSTED}/echo", "-k") == "401", "the site is reached")


def shows_parents_and_routes(tab):
    tab.until("!document.getElementById('parents').hidden")
    said = tab.run("document.getElementById('route-groups').innerText")
    assert "http://parent.example:8080\n✓ in use" in said.replace("\n\n", "\n"), said
    # Names of this machine have no parent.
    assert "direct (it is this machine)" in said and SITE in said, said


# MARK: How it looks


def has_no_faults_of_accessibility(tab):
    with open(os.path.join(CLIENTS, "page_rules.js"), encoding="utf-8") as file:
        rules = file.read()
    faults = []
    tab.run("document.querySelector('#sites details').open = true, scrollTo(0, 0)")
    for width, scheme in [(1200, "light"), (1200, "dark"), (360, "light"), (360, "dark"), (320, "light")]:
        tab.look(width, 900, scheme)
        tab.picture(f"page-{width}-{scheme}", full=True)
        faults += [f"{width} {scheme}: {fault}" for fault in tab.run(rules)]
    tab.look(1200, 900, "light")
    assert not faults, "; ".join(faults)


def has_names_and_roles(tab):
    """By the browser's own tree, which screen readers read."""
    nodes = [node for node in tab.call("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]

    def value(node, member):
        return node.get(member, {}).get("value")

    named = ["button", "link", "textbox", "searchbox", "combobox", "DisclosureTriangle", "image", "table", "region",
             "navigation", "columnheader", "form", "dialog"]  # fmt: skip
    nameless = [value(node, "role") for node in nodes if value(node, "role") in named and not value(node, "name")]
    assert not nameless, f"without a name: {nameless}"
    roles = [value(node, "role") for node in nodes]
    for role, count in [("main", 1), ("navigation", 1), ("banner", 1), ("table", 3), ("searchbox", 3), ("combobox", 2),
                        ("image", 3), ("status", 1), ("alert", 1)]:  # fmt: skip
        assert roles.count(role) >= count, f"{roles.count(role)} of the role {role}"
    for name in ["Requests per second", "Latency", "Answers per second"]:
        assert any(value(node, "role") == "image" and value(node, "name").startswith(name) for node in nodes), name


def shows_where_the_focus_is(tab):
    """Each stop of the keyboard has an outline that can be seen and is not covered, and there is no trap."""
    for width in [1200, 360]:
        tab.look(width, 700, "dark")
        tab.run("document.querySelector('.skip').focus()")
        for shift in [False, True]:
            stops = []
            while len(stops) < 120:
                tab.press("Tab", shift)
                stop = tab.run(f"""(node => {{
                  const style = getComputedStyle(node), box = node.getBoundingClientRect();
                  const x = box.left + Math.min(box.width, innerWidth) / 2;
                  const top = document.elementFromPoint(x, box.top + Math.min(10, box.height / 2));
                  return {{ name: node.id || node.textContent.trim().slice(0, 40), isPage: node === document.body,
                    outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
                    isSeen: box.bottom > 0 && box.top < innerHeight && Boolean(top && (node.contains(top))) }};
                }})({FOCUSED})""")  # fmt: skip
                if stop["isPage"]:
                    break
                stops.append(stop)
            assert 12 < len(stops) < 120, f"{width}: {[stop['name'] for stop in stops]}"
            for stop in stops:
                assert stop["outline"], f"{width}: {stop['name']} has no outline"
                assert stop["isSeen"], f"{width}, shift {shift}: {stop['name']} is covered"
    tab.look(1200, 900, "light")


# MARK: Failures


def reconnects(tab):
    tab.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    tab.until("!document.getElementById('banner').hidden")
    assert "does not answer" in hears(tab, "#banner-text"), hears(tab, "#banner-text")
    tab.picture("not-connected")
    tab.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    tab.run("document.getElementById('retry').click()")
    tab.until("document.getElementById('banner').hidden")


def survives_a_restart_in_place(serve, tab):
    """The session goes on in the process that replaces this one, or a new link is asked for; nothing hangs."""
    serve.restart()
    tab.run("document.getElementById('retry').click()")
    tab.until("!document.getElementById('ended').hidden")
    tab.open(serve.link())
    tab.until("document.getElementById('health').textContent === '✓ Running'")
    until(lambda: serve.first.poll() is not None, "the former process ends although a page was open")


def says_that_a_new_server_needs_a_new_link(serve, tab):
    """Returns the new server, at the same address."""
    serve.stop(signal.SIGKILL)
    tab.until("document.getElementById('health').textContent === '✗ Not connected'")
    new = Serve(serve.port)
    tab.run("document.getElementById('retry').click()")
    tab.until("!document.getElementById('ended').hidden")
    assert "countersign ui" in hears(tab, "#ended")
    tab.open(new.link())
    tab.until("document.getElementById('health').textContent === '✓ Running'")
    new.status(f"{SITE}/echo")
    tab.until(f"{ROW}?.textContent.includes('basic with enrollment')")
    return new


def shows_hostile_texts_as_texts(tab, page):
    stand_in = StandIn(*page)
    tab.open(stand_in.link)
    tab.until("document.querySelectorAll('#rows tr').length >= 12")
    tab.until("document.querySelector('#approvals button') && document.querySelector('#questions button')")
    found = tab.run(
        "[...document.querySelectorAll('img, [onerror], script')].filter(node => node.textContent.length < 1000).length"
    )
    assert found == 0, f"{found} elements from texts"
    text = tab.run("document.body.innerText")
    assert "<img src=x onerror=" in text, "the markup is shown"
    assert "\\u{202E}gpj.exe" in text and "\u202e" not in text, "marks of direction are shown by their number"
    assert not tab.run("document.title").startswith("run")
    tab.picture("hostile", full=True)
    for width in [1200, 360]:
        tab.look(width, 900, "light")
        wide = tab.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} wide in {width}"
    tab.look(1200, 900, "light")
    stand_in.is_stopped = True


def stays_small_in_a_flood(tab, page, rate=10_000, seconds=4):
    """As fast as 10,000 events per second, the page answers to its buttons, and its memory does not grow."""

    def memory():
        tab.call("HeapProfiler.collectGarbage")
        counters = tab.call("Memory.getDOMCounters")
        return tab.call("Runtime.getHeapUsage")["usedSize"] / 2**20, counters["nodes"]

    stand_in = StandIn(*page, rate=rate)
    tab.open(stand_in.link)
    tab.until("totals.events > 20000")
    (heap, nodes), before = memory(), tab.run("totals.events")
    delay = tab.run(f"""new Promise(done => {{
      let [last, worst] = [performance.now(), 0];
      const end = last + {seconds * 1000};
      (function step() {{
        const now = performance.now();
        [worst, last] = [Math.max(worst, now - last), now];
        if (now > end) done(worst); else setTimeout(step, 20);
      }})();
    }})""")
    (heap_after, nodes_after), received = memory(), tab.run("totals.events") - before
    tab.picture("flood")
    tab.run("document.getElementById('pause').click()")
    assert tab.run("document.getElementById('pause').textContent") == "Resume"
    stand_in.is_stopped = True
    said = f"{received / seconds:.0f} events per second, heap {heap:.1f} to {heap_after:.1f} MiB, nodes {nodes} to "
    said += f"{nodes_after}, at most {delay:.0f} ms between two timers"
    print(f"# {said}", flush=True)
    assert received > 0.5 * rate * seconds, said
    assert heap_after < heap + 8 and nodes_after < nodes + 5000 and nodes_after < 40_000, said
    assert delay < 2000, said


# MARK: The visit


def check(name, body, *arguments):
    try:
        result = body(*arguments)
        print(f"ok {name}", flush=True)
        return result
    except Exception as error:  # Each check is reported, and the others go on.
        place = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(place) if frame.filename.endswith("page.py")), 0)
        print(f"failed {name}: line {line}: {error!r}".replace("\n", " "), flush=True)
        return None


def visit(serve, chromium):
    tab = chromium.tab()
    tab.look(1200, 900, "light")
    link = check("opensByTheLink", opens_by_the_link, serve, tab)
    check("aUsedLinkDoesNotOpen", a_used_link_does_not_open, serve, chromium, link or serve.link())
    check("showsARequestWithItsFailingCheck", shows_a_request_with_its_failing_check, serve, tab)
    check("filters", filters, tab)
    check("approvesByTheKeyboard", approves_by_the_keyboard, serve, tab)
    check("allowsACertificate", allows_a_certificate, serve, tab)
    check("showsParentsAndRoutes", shows_parents_and_routes, tab)
    check("hasNamesAndRoles", has_names_and_roles, tab)
    check("hasNoFaultsOfAccessibility", has_no_faults_of_accessibility, tab)
    check("showsWhereTheFocusIs", shows_where_the_focus_is, tab)
    page_attacks.visit(check, serve, chromium, tab)
    page = page_attacks.document(serve)
    check("reconnects", reconnects, tab)
    check("survivesARestartInPlace", survives_a_restart_in_place, serve, tab)
    serve = check("saysThatANewServerNeedsANewLink", says_that_a_new_server_needs_a_new_link, serve, tab) or serve
    check("showsHostileTextsAsTexts", shows_hostile_texts_as_texts, tab, page)
    check("staysSmallInAFlood", stays_small_in_a_flood, tab, page)
    check("worksInFirefox", page_firefox.visit, serve, FOLDER, SITE)
    return serve


if __name__ == "__main__":
    serve = Serve()
    try:
        chromium = Chromium(FOLDER)
        try:
            serve = visit(serve, chromium)
        finally:
            chromium.close()
    finally:
        serve.stop()
    print("done", flush=True)
