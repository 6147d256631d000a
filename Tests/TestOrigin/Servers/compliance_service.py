# SPDX-License-Identifier: Apache-2.0
"""The compliance service of an organisation, as Documentation/DeviceManagement.md defines it.

Usage: compliance_service.py CONTROL LOG POLICY [CERT KEY]    Prints `listening PORT`; http without CERT. CONTROL is a
JSON object:

    script        "page": compliant once a person has opened the page; "compliant": at once; "refused": the person
                  refuses at the page; "rules": never compliant, with the rules that are not met; "unassigned": no
                  policy is assigned; "pending": never decides (default: "page")
    tokens        whether a bearer token identifies the person, so that no page is needed (default: false)
    lying         says that the device complies, and does not tell the provider
    restart       wants programs to start again
    raw           the body of every reply, with "type" and "status"
    page          the address of the page, in place of the service's own
    basic         "user:password" that the service's own page requires
    repeat        how often "raw" is repeated

Says nothing about anybody before that person has opened the page of the session, or without the verifier of whoever has
begun the session. When a device complies, creates the file POLICY, which tells the provider. A POST to /control
replaces CONTROL, and is not logged. Writes one JSON object for each request to LOG.
"""

import base64
import hashlib
import http.server
import json
import secrets
import ssl
import sys
import threading
import urllib.parse

TEXTS = {
    "en": {
        "Compliant": ("All set", "This device complies."),
        "Noncompliant": ("Not protected", "The disk must be encrypted."),
        "Unassigned": ("No policy", "No protection policy is assigned to you."),
        "InteractionRequired": ("Sign in", "Open the page and sign in."),
        "Cancelled": ("Refused", "You have refused."),
        "Pending": ("Please wait", "The device is being checked."),
    },
    "de": {
        "Compliant": ("Alles bereit", "Dieses Gerät erfüllt die Vorgaben."),
        "Noncompliant": ("Nicht geschützt", "Die Festplatte muss verschlüsselt sein."),
        "Unassigned": ("Keine Richtlinie", "Ihnen ist keine Richtlinie zugewiesen."),
        "InteractionRequired": ("Anmelden", "Öffnen Sie die Seite und melden Sie sich an."),
        "Cancelled": ("Abgelehnt", "Sie haben abgelehnt."),
        "Pending": ("Bitte warten", "Das Gerät wird geprüft."),
    },
}


class Service(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, control, log, policy, certificate=None, key=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.control, self.policy, self.sessions = control, policy, {}
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate, key)
        host = "https://compliance.test.localhost" if certificate else "http://127.0.0.1"
        self.base = f"{host}:{self.server_port}"
        self.log_file, self.lock = open(log, "a", buffering=1), threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def setup(self):
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status in (301, 302, 307):
            self.send_header("Location", "https://evil.example/")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def state(self, state, **more):
        language = (self.headers.get("Accept-Language") or "en")[:2]
        key = "Unassigned" if more.get("Code") == 103 else state
        title, message = TEXTS.get(language, TEXTS["en"])[key]
        document = {"Version": 1, "ComplianceState": state, "Title": title, "Message": message} | more
        self.reply(200, json.dumps(document).encode(), "application/json; charset=utf-8")

    def decided(self):
        control = self.server.control
        script = control.get("script", "page")
        if script == "rules":
            rule = {
                "SettingID": "disk", "ExpectedValue": "encrypted", "Title": "Disk encryption",
                "Description": "The disk is not encrypted.", "MoreInfoUri": "https://help.example/disk",
            }
            return self.state("Noncompliant", NoncompliantRules=[rule])
        if script == "unassigned":
            return self.state("Noncompliant", Code=103)
        if script == "refused":
            return self.state("Cancelled")
        if not control.get("lying"):
            open(self.server.policy, "w").close()
        return self.state("Compliant", Restart=bool(control.get("restart")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        control = self.server.control
        if self.path == "/control":
            self.server.control = json.loads(body)
            return self.reply(200, b"", "text/plain")
        asked = json.loads(body)
        token = (self.headers.get("Authorization") or "").startswith("Bearer ")
        entry = {
            "action": asked.get("Action"), "language": self.headers.get("Accept-Language"), "token": token,
            "silent": asked.get("Silent"), "account": asked.get("AccountId"), "user": asked.get("User"),
        }
        with self.server.lock:
            self.server.log_file.write(json.dumps(entry) + "\n")
        if "raw" in control:
            raw = (control["raw"] * control.get("repeat", 1)).encode()
            return self.reply(control.get("status", 200), raw, control.get("type", "application/json"))
        if asked.get("Version") != 1:
            return self.reply(400, b"{}", "application/json")
        script = control.get("script", "page")
        if asked["Action"] == "remediate":
            if token and not control.get("tokens"):
                return self.reply(401, b"{}", "application/json")
            if token or script == "compliant":
                return self.decided()
            name = secrets.token_urlsafe(12)
            self.server.sessions[name] = [asked["Challenge"], False]
            page = control.get("page") or f"{self.server.base}/page?session={name}"
            state = "Pending" if script == "pending" else "InteractionRequired"
            return self.state(state, Session=name, PageUri=page, PollInterval=1)
        session = self.server.sessions.get(asked.get("Session"))
        digest = hashlib.sha256(str(asked.get("Verifier")).encode()).digest()
        if not session or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != session[0]:
            return self.reply(403, b"{}", "application/json")
        if not session[1]:
            return self.state("Pending", PollInterval=1)
        return self.decided()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        session = dict(urllib.parse.parse_qsl(url.query)).get("session")
        basic = self.server.control.get("basic")
        expected = "Basic " + base64.b64encode((basic or "").encode()).decode()
        isPermitted = not basic or self.headers.get("Authorization") == expected
        with self.server.lock:
            self.server.log_file.write(json.dumps({"action": "page" if isPermitted else "challenge"}) + "\n")
        if not isPermitted:
            return self.reply(401, b"no", "text/plain", WWW_Authenticate='Basic realm="portal"')
        if url.path != "/page" or session not in self.server.sessions:
            return self.reply(404, b"nothing here", "text/plain")
        # Everybody who opens the page signs in there.
        self.server.sessions[session][1] = True
        self.reply(200, b"<p>Your device is registered.</p>", "text/html")


control, *files = sys.argv[1:6]
server = Service(json.loads(control), *files)
print(f"listening {server.server_port}", flush=True)
server.serve_forever()
