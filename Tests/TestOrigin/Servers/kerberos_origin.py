# SPDX-License-Identifier: Apache-2.0
"""An origin that accepts Kerberos in SPNEGO with MIT's GSS-API (python3-gssapi), and demands channel bindings.

Usage: kerberos_origin.py CONTROL LOG CERT KEY    Prints `listening PORT`. CONTROL is a JSON object:

    final    the last token: "right" (default), "none", "damaged", or "unproven": accepted without the server's proof
    errors   a rejection comes with a token that says why (default: false)
    offers   the challenges (default: ["Negotiate"])
    padding  the length of a 401's content (default: a few bytes)

Answers with the principal's name, a space and the length of the content. Writes one JSON object per request to LOG.
"""

import base64
import hashlib
import http.server
import json
import ssl
import sys
import threading

import gssapi
import gssapi.raw

CHANNEL_BOUND = 0x800


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def respond(self):
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        word, _, value = self.headers.get("Authorization", "-").partition(" ")
        user, token, why = None, None, "no answer"
        if word == "Negotiate":
            user, token, why = self.accept(base64.b64decode(value))
        self.server.log({
            "method": self.command, "path": self.path, "auth": word, "user": user, "why": why,
            "received": len(content),
        })
        body = f"{user} {len(content)}".encode() if user else b"not accepted".ljust(self.server.control["padding"])
        self.send_response(200 if user else 401)
        if user:
            if token:
                self.send_header("WWW-Authenticate", "Negotiate " + base64.b64encode(token).decode())
        else:
            for offer in self.server.control["offers"]:
                if token and self.server.control["errors"] and offer == "Negotiate":
                    offer += " " + base64.b64encode(token).decode()
                self.send_header("WWW-Authenticate", offer)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = respond

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
        return str(context.initiator_name), None if final == "none" else reply, None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, control, log, certificate, key):
        super().__init__(("127.0.0.1", 0), Handler)
        self.control = {"final": "right", "errors": False, "offers": ["Negotiate"], "padding": 0} | control
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        with open(certificate, encoding="ascii") as file:
            first = file.read().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
        self.hash = hashlib.sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN"):])).digest()
        self.log_file = open(log, "a", encoding="utf-8")
        self.lock = threading.Lock()

    def log(self, entry):
        with self.lock:
            self.log_file.write(json.dumps(entry) + "\n")
            self.log_file.flush()

    def handle_error(self, request, client_address):
        self.log({"error": repr(sys.exc_info()[1])})


def main():
    server = Server(json.loads(sys.argv[1]), *sys.argv[2:5])
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()


main()
