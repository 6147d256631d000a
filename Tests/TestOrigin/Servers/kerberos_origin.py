# SPDX-License-Identifier: Apache-2.0
"""An origin that accepts Kerberos in SPNEGO with MIT's GSS-API (python3-gssapi), and demands channel bindings.

Usage: kerberos_origin.py CONTROL LOG CERT KEY    Prints `listening PORT`. CONTROL is a JSON object:

    final    the last token: "right" (default), "none", "damaged", or accepted without the server's proof: "unproven",
             "gokrb5" (as its service does), "blank", "twice", "raw" (Kerberos' own, without SPNEGO), "cut"
    errors   a rejection comes with a token that says why (default: false)
    offers   the challenges (default: ["Negotiate"])
    fallback the challenges of a 401 to a token (default: offers)
    accepts  how many tokens are accepted; the rest are refused (default: all)
    padding  the length of a 401's content (default: a few bytes)

Answers with the principal's name, a space and the length of the content. With `Upgrade`, switches protocols and returns
one line. Writes one JSON object per request to LOG.
"""

import base64
import hashlib
import ssl
import sys

import gssapi
import gssapi.raw
from logging_server import ControlledServer, LoggingHandler

CHANNEL_BOUND = 0x800


class Handler(LoggingHandler):
    def respond(self):
        content = self.read_content()
        word, _, value = self.headers.get("Authorization", "-").partition(" ")
        user, token, why = None, None, "no answer"
        if word == "Negotiate":
            user, token, why = self.accept(base64.b64decode(value))
            if user and not self.server.has_room():
                user, token, why = None, None, "no more"
        self.server.log({
            "method": self.command, "path": self.path, "auth": word, "user": user, "why": why,
            "received": len(content),
        })
        last = token and "Negotiate " + base64.b64encode(token).decode()
        if user and self.server.control["final"] == "blank":
            last = last[:20] + " " + last[20:]
        if user and self.server.control["final"] == "twice":
            last += ", " + last
        if user and self.headers.get("Upgrade"):
            return self.switch(last)
        if user:
            return self.reply(200, f"{user} {len(content)}".encode(), [("WWW-Authenticate", last)] if last else [])
        control = self.server.control
        offered = word == "Negotiate" and control["fallback"] or control["offers"]
        offers = [last if offer == "Negotiate" and last and control["errors"] else offer for offer in offered]
        body = b"not accepted".ljust(control["padding"])
        self.reply(401, body, [("WWW-Authenticate", offer) for offer in offers])

    def switch(self, last):
        """Switches protocols, and returns the first line in the new one."""
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        if last:
            self.send_header("WWW-Authenticate", last)
        self.end_headers()
        self.wfile.write(self.rfile.readline())
        self.close_connection = True

    def accept(self, token):
        """The user, the last token, and why there is no user."""
        bindings = gssapi.raw.ChannelBindings(application_data=b"tls-server-end-point:" + self.server.hash)
        context = gssapi.SecurityContext(usage="accept", channel_bindings=bindings)
        reply = None
        try:
            # If this fails, it returns the token that tells the client, and the next access throws.
            reply = context.step(token)
            if not context.complete:
                return None, reply, "not complete"
        except gssapi.exceptions.GSSError as error:
            return None, reply, str(error)
        if not int(context.actual_flags) & CHANNEL_BOUND:
            return None, None, "no channel binding"
        final = self.server.control["final"]
        if final == "damaged":
            reply = reply[:-1] + bytes([reply[-1] ^ 1])
        if final == "unproven":
            reply = bytes.fromhex("a1073005a0030a0100")
        if final == "gokrb5":
            reply = base64.b64decode("oRQwEqADCgEAoQsGCSqGSIb3EgECAg==")
        if final == "raw":
            reply = reply[reply.index(0x6F):]
        if final == "cut":
            reply = reply[:-1]
        return str(context.initiator_name), None if final == "none" else reply, None


class Server(ControlledServer):
    defaults = {"final": "right", "errors": False, "offers": ["Negotiate"], "fallback": None, "accepts": None,
                "padding": 0}

    def __init__(self, handler, control, log, certificate, key):
        super().__init__(handler, control, log, certificate, key)
        with open(certificate, encoding="ascii") as file:
            first = file.read().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
        self.hash = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN"):])).digest()
        self.accepted = 0

    def has_room(self):
        with self.lock:
            self.accepted += 1
            return self.control["accepts"] is None or self.accepted <= self.control["accepts"]


Server(Handler, *sys.argv[1:5]).run()
