# SPDX-License-Identifier: Apache-2.0
"""An origin that challenges for Basic, raw NTLM, or NTLM inside Negotiate, which pyspnego verifies.

It accepts NTLM only with a MIC, and over TLS only with the `tls-server-end-point` channel binding of its certificate
(RFC 5929 section 4.1). Writes one JSON object per request to --log. Prints `listening PORT`.

Paths: /echo  /headers  /bytes/N  /chunked/N  /status/N  /git/... (git http-backend)  and files below --root.
Under /fault/close-on-authenticate/ it closes the connection when a password or AuthenticateMessage arrives, and under
/fault/hang-on-authenticate/ it responds nothing to a password until the client closes the connection. A changed file
of users counts from the next password on.
"""

import argparse
import base64
import hashlib
import json
import os
import random
import subprocess
import urllib.parse

import spnego
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from logging_server import LoggingHandler, LoggingServer
from spnego._ntlm_raw.messages import Authenticate, AvFlags, AvId, NTClientChallengeV2
from spnego.channel_bindings import GssChannelBindings

BASIC = 'Basic realm="TestOrigin", charset="UTF-8"'
BLOCK = random.Random(1).randbytes(65536)


def end_point_binding(path):
    """The RFC 5929 binding of the first certificate in a PEM file."""
    with open(path, "rb") as file:
        certificate = x509.load_pem_x509_certificate(file.read())
    algorithm = certificate.signature_hash_algorithm.name
    digest = "sha256" if algorithm in ("md5", "sha1") else algorithm
    der = certificate.public_bytes(Encoding.DER)
    return GssChannelBindings(application_data=b"tls-server-end-point:" + hashlib.new(digest, der).digest())


def message_type(token):
    """The type of the NTLM message in a token, raw or wrapped in SPNEGO, and its offset."""
    at = token.find(b"NTLMSSP\0")
    if at < 0 or len(token) < at + 12:
        return None, at
    return {1: "negotiate", 2: "challenge", 3: "authenticate"}.get(token[at + 8]), at


def strict_fault(token, at, binding):
    """A fault that pyspnego permits and a server with Extended Protection does not, or None."""
    message = Authenticate.unpack(token[at:])
    response = message.nt_challenge_response or b""
    if len(response) <= 24:
        return "not NTLMv2"
    pairs = NTClientChallengeV2.unpack(response[16:]).av_pairs
    if not pairs.get(AvId.flags, 0) & AvFlags.mic or not message.mic or message.mic == bytes(16):
        return "no MIC"
    if binding is not None and pairs.get(AvId.channel_bindings) != hashlib.md5(binding.pack()).digest():
        return "wrong channel binding"
    return None


class Handler(LoggingHandler):
    server_version = "TestOrigin"
    sys_version = ""

    def setup(self):
        super().setup()
        self.number = self.server.next_number()
        self.context = None
        self.user = None

    def finish(self):
        try:
            super().finish()
        except OSError:
            pass

    # Requests

    def respond(self):
        self.kind = None
        self.why = None
        self.body = self.read_content()
        if self.server.mode != "open" and not self.authorize():
            return
        path = urllib.parse.urlsplit(self.path).path
        if path.startswith("/git/"):
            return self.git(path[4:])
        if path.startswith("/bytes/"):
            return self.reply_bytes(int(path.split("/")[2]))
        if path.startswith("/chunked/"):
            return self.reply_chunked(int(path.split("/")[2]))
        if path.startswith("/status/"):
            return self.reply(int(path.split("/")[2]), b"")
        if path == "/headers":
            return self.reply_json([[name, value] for name, value in self.headers.items()])
        if path == "/echo" or self.command not in ("GET", "HEAD"):
            return self.reply_json(
                {"method": self.command, "length": len(self.body), "sha256": hashlib.sha256(self.body).hexdigest()}
            )
        return self.file(path)

    # Authentication

    def authorize(self):
        value = self.headers.get("Authorization")
        if value is None:
            if self.user is not None and self.server.mode != "basic":
                return True
            self.deny([self.server.scheme if self.server.mode != "basic" else BASIC])
            return False
        if self.server.mode == "basic":
            return self.authorize_basic(value)
        return self.authorize_ntlm(value)

    def authorize_basic(self, value):
        self.kind = "basic"
        if self.path.startswith("/fault/close-on-authenticate/"):
            self.record(0)
            self.close_connection = True
            return False
        if self.path.startswith("/fault/hang-on-authenticate/"):
            self.record(0)
            self.rfile.read(1)
            self.close_connection = True
            return False
        for user, password in self.server.read_users():
            if value == "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode():
                self.user = user
                return True
        self.why = "wrong password"
        self.deny([BASIC])
        return False

    def authorize_ntlm(self, value):
        scheme, _, text = value.partition(" ")
        if scheme.lower() != self.server.scheme.lower():
            self.kind = "other"
            self.deny([self.server.scheme])
            return False
        token = base64.b64decode(text)
        self.kind, at = message_type(token)
        if self.kind != "authenticate":
            self.user = None
            self.context = self.server.acceptor()
        elif self.path.startswith("/fault/close-on-authenticate/"):
            self.record(0)
            self.close_connection = True
            return False
        try:
            if self.kind == "authenticate":
                self.why = strict_fault(token, at, self.server.binding)
                if self.why:
                    raise ValueError(self.why)
            answer = self.context.step(token)
        except Exception as error:
            self.why = self.why or type(error).__name__
            self.context = None
            self.deny([self.server.scheme])
            return False
        encoded = base64.b64encode(answer or b"").decode()
        if not self.context.complete:
            self.deny([f"{self.server.scheme} {encoded}"])
            return False
        self.user = self.context.client_principal
        self.final = f"{self.server.scheme} {encoded}" if answer else None
        return True

    def deny(self, challenges):
        self.reply(401, b"origin says: log in first\n", challenges=challenges)

    # Replies

    def record(self, status):
        self.server.log(
            {
                "connection": self.number,
                "method": self.command,
                "path": self.path,
                "auth": self.kind,
                "why": self.why,
                "user": self.user,
                "status": status,
                "received": len(self.body),
                "fields": [name.lower() for name in self.headers.keys()],
            }
        )

    def head(self, status, length, content_type="text/plain", challenges=()):
        self.record(status)
        self.send_response(status)
        for challenge in challenges:
            self.send_header("WWW-Authenticate", challenge)
        if getattr(self, "final", None):
            self.send_header("WWW-Authenticate", self.final)
            self.final = None
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        elif status not in (204, 304):
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(length))
        self.send_header("X-User", self.user or "-")
        self.end_headers()

    def reply(self, status, body, content_type="text/plain", challenges=()):
        self.head(status, len(body), content_type, challenges)
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def reply_json(self, value):
        self.reply(200, json.dumps(value).encode(), "application/json")

    def reply_bytes(self, size):
        self.head(200, size, "application/octet-stream")
        if self.command == "HEAD":
            return
        while size > 0:
            self.wfile.write(BLOCK[: min(size, len(BLOCK))])
            size -= len(BLOCK)

    def reply_chunked(self, size):
        self.head(200, None)
        while size > 0:
            piece = BLOCK[: min(size, 1000)]
            size -= len(piece)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def file(self, path):
        place = os.path.normpath(os.path.join(self.server.root, path.lstrip("/")))
        if not place.startswith(self.server.root) or not os.path.isfile(place):
            return self.reply(404, b"not here\n")
        with open(place, "rb") as file:
            kind = "text/html" if path.endswith(".html") else "application/octet-stream"
            return self.reply(200, file.read(), kind)

    def git(self, path):
        parts = urllib.parse.urlsplit(self.path)
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "GIT_PROJECT_ROOT": self.server.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "REQUEST_METHOD": self.command,
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(self.body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": self.user or "",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=self.body, env=environment, capture_output=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(fields.get("Status", "200").split()[0])
        self.reply(status, body, fields.get("Content-Type", "application/octet-stream"))


class Server(LoggingServer):
    def __init__(self, options):
        super().__init__(Handler, options.log, options.cert, options.key, options.port)
        self.mode = options.mode
        self.scheme = {"ntlm": "NTLM", "negotiate": "Negotiate"}.get(options.mode, "Basic")
        self.root = os.path.abspath(options.root)
        self.binding = end_point_binding(options.cert) if options.cert else None
        self.user_file = options.users
        if options.users:
            os.environ["NTLM_USER_FILE"] = options.users
        self.connections = 0

    def read_users(self):
        with open(self.user_file, encoding="utf-8") as file:
            return [line.rstrip("\n").split(":", 2)[1:] for line in file if line.strip()]

    def acceptor(self):
        protocol = "ntlm" if self.mode == "ntlm" else "negotiate"
        options = spnego.NegotiateOptions.none if self.mode == "ntlm" else spnego.NegotiateOptions.use_negotiate
        return spnego.server(protocol=protocol, options=options, channel_bindings=self.binding)

    def next_number(self):
        with self.lock:
            self.connections += 1
            return self.connections


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["open", "basic", "ntlm", "negotiate"], default="open")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--users", help="lines of DOMAIN:USER:PASSWORD")
    parser.add_argument("--root", default=".")
    parser.add_argument("--log", required=True)
    Server(parser.parse_args()).run()


if __name__ == "__main__":
    main()
