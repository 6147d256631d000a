# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the proxy's page server, whose state and events are hostile or too many."""

import http.server
import json
import threading
import time

MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
# A mark that turns the direction of the text, and a line's end.
MARKS = "\u202egpj.exe\n\u0007"
HOSTILE = MARKUP + MARKS

REQUEST = {
    "event": "request", "time": "2026-03-02T09:15:04.000Z", "pid": 4711, "uid": 1000, "program": "/usr/bin/git",
    "method": "GET", "site": "https://git.corp.example:443", "decision": "intercept", "challenge": "ntlm",
    "credential": "enrollment", "status": 200, "ms": 45,
}  # fmt: skip


def hostile_events():
    """Each kind of event with the text in every member that has one."""
    texts = dict.fromkeys(
        ["rule", "reason", "program", "credential", "trust", "scheme", "realm", "identity", "message", "hint", "name"],
        HOSTILE,
    )
    site = f"https://{HOSTILE}:443"
    kinds = ["request", "rejected", "untrusted", "distrusted", "unreached", "renewed", "renewalFailed", "notReloaded",
             "notice", MARKUP]  # fmt: skip
    for kind in kinds:
        yield {**REQUEST, **texts, "event": kind, "site": site, "method": MARKUP, "check": "credential",
               "challenge": MARKUP, "offered": [MARKUP], "level": MARKUP, "state": MARKUP,
               "fingerprint": f"sha256:{MARKUP}"}  # fmt: skip
    yield {**question(7), "event": "question"}


def question(number):
    return {
        "id": number, "site": f"https://{HOSTILE}:443", "rule": HOSTILE, "method": MARKUP, "credential": HOSTILE,
        "client": f"/usr/bin/{HOSTILE}", "uid": 1000, "waiting": 1, "secondsLeft": 50,
    }  # fmt: skip


def hostile_state():
    problem = {"message": HOSTILE, "advice": [HOSTILE]}
    row = {"site": f"https://{HOSTILE}", "rule": HOSTILE, "offered": [MARKUP, "ntlm", "basic"], "answered": MARKUP,
           "requests": 1, "refused": 1, "lastStatus": 401, "lastMs": 5}  # fmt: skip
    status = {
        "home": HOSTILE, "version": HOSTILE, "paused": False, "problems": [problem],
        "server": {"version": HOSTILE, "pid": 1, "addresses": [HOSTILE], "since": HOSTILE},
        "vault": {"state": "open", "openedBy": HOSTILE}, "sites": {"lines": 1, "kinds": {HOSTILE: 1}},
        "credentials": [{"name": HOSTILE, "kind": HOSTILE, "user": HOSTILE}],
        "identities": [{"name": HOSTILE, "notAfter": "2027-01-01T00:00:00Z"}], "endings": [], "signIns": [],
    }  # fmt: skip
    return {
        "status": status, "sites": [row], "listed": [{"site": HOSTILE, "rule": HOSTILE, "options": HOSTILE}],
        "questions": [question(7)], "routes": {
            "parents": [{"parent": HOSTILE, "lastForSeconds": 70}], "scripts": [{"script": HOSTILE, "fault": HOSTILE}],
            "sites": [{"site": HOSTILE, "hops": [HOSTILE, HOSTILE]}],
        },
    }  # fmt: skip


def calm_state():
    status = {"home": "/home/jdoe", "version": "1", "paused": False, "problems": [], "vault": {"state": "none"},
              "sites": {"lines": 1}, "endings": []}  # fmt: skip
    return {"status": status, "sites": [], "listed": [], "questions": []}


class StandIn(http.server.ThreadingHTTPServer):
    """`page` and `policy` are those of the proxy. With `rate`, it sends so many events per second; otherwise the
    hostile ones."""

    daemon_threads = True

    def __init__(self, page, policy, rate=None):
        super().__init__(("127.0.0.1", 0), Answers)
        self.page, self.policy, self.rate = page, policy, rate
        self.sent = 0
        self.is_stopped = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def link(self):
        return f"http://127.0.0.1:{self.server_port}/#token"


class Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, kind, content, **fields):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer("application/json", b'{"session":"session"}')

    def do_GET(self):
        if self.path == "/":
            return self.answer(
                "text/html; charset=utf-8", self.server.page, Content_Security_Policy=self.server.policy
            )
        if self.path == "/state":
            state = calm_state() if self.server.rate else hostile_state()
            return self.answer("application/json", json.dumps(state).encode())
        self.answer("text/event-stream", b": here\n\n")
        try:
            self.flood() if self.server.rate else self.tell(hostile_events())
        except OSError:
            pass

    def tell(self, events):
        for number, event in enumerate(events, 1):
            self.wfile.write(b"data: " + json.dumps({**event, "n": number}).encode() + b"\n\n")
        while not self.server.is_stopped:
            time.sleep(0.1)

    def flood(self):
        """In 50 pieces per second, as the proxy does it. What the browser is too slow for is not made up for."""
        count = self.server.rate // 50
        due = time.monotonic()
        while not self.server.is_stopped:
            first = self.server.sent + 1
            events = (
                {**REQUEST, "n": number, "site": f"https://s{number % 300}.example:443"}
                for number in range(first, first + count)
            )
            self.wfile.write(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))
            self.server.sent += count
            due = max(due + 0.02, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
