# SPDX-License-Identifier: Apache-2.0
"""An origin that asks a device for its certificate with PKeyAuth, and verifies the signed token.

Usage: device_origin.py CONTROL LOG CERT KEY    Prints `listening PORT`. CONTROL is a JSON object:

    status        the status of a challenge (default: 401)
    authorities   CertAuthorities (default: none)
    algorithms    SupportedAlgs (default: none)
    authority     the URL that the device must sign (default: that of the request, without its query)
    insists       whether windows that do not announce a certificate are asked, too (default: false)
    submit        the SubmitUrl of a page's challenge (default: /submit here)

Only a client that sends `x-ms-PKeyAuth: 1.0` is asked; any other one is refused with 403. Each challenge has a new
nonce, for one answer. Writes one JSON object per request to LOG.

/page?go=URL is a page for a window: it redirects one whose User-Agent ends with PKeyAuth/1.0 to urn:http-auth:PKeyAuth,
and any other one to URL. Whatever arrives at /submit?go=URL is judged, and redirected to URL unless it is refused.
"""

import base64
import json
import re
import secrets
import sys
import time
import urllib.parse

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from logging_server import ControlledServer, LoggingHandler

CONTEXT = 'context "quoted"'
PARAMETER = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:, )?')


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify(token, nonces, audience):
    """Returns the certificate's subject; raises ValueError."""
    header, payload, signature = token.split(".")
    head, claims = json.loads(decode(header)), json.loads(decode(payload))
    if head["typ"] != "JWT" or len(head["x5c"]) != 1:
        raise ValueError("header")
    certificate = x509.load_der_x509_certificate(base64.b64decode(head["x5c"][0], validate=True))
    key, signed, raw = certificate.public_key(), f"{header}.{payload}".encode(), decode(signature)
    if head["alg"] == "RS256":
        key.verify(raw, signed, padding.PKCS1v15(), hashes.SHA256())
    elif head["alg"] == "ES256":
        numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        key.verify(encode_dss_signature(*numbers), signed, ec.ECDSA(hashes.SHA256()))
    else:
        raise ValueError("alg")
    if set(claims) != {"aud", "iat", "nonce"} or not isinstance(claims["iat"], str):
        raise ValueError("claims")
    if abs(int(claims["iat"]) - time.time()) > 300:
        raise ValueError("iat")
    if claims["aud"] != audience:
        raise ValueError(f"aud {claims['aud']}")
    if claims["nonce"] not in nonces:
        raise ValueError("nonce")
    nonces.discard(claims["nonce"])
    return head["alg"], certificate.subject.rfc4514_string()


class Handler(LoggingHandler):
    def respond(self):
        body = self.read_content()
        url = urllib.parse.urlsplit(self.path)
        go = dict(urllib.parse.parse_qsl(url.query)).get("go")
        if url.path == "/page":
            return self.ask(go)
        value = self.headers.get("Authorization")
        announced = self.headers.get_all("x-ms-PKeyAuth") or []
        status, why = self.judge(value, announced)
        self.server.log({
            "method": self.command, "path": self.path, "status": status, "announced": announced, "why": why,
            "auth": value and value.split(" ")[0], "body": len(body),
            "parameters": value and [name for name, _ in PARAMETER.findall(value)],
        })
        control = self.server.control
        if go and status == 200:
            return self.reply(302, b"", [("Location", go)])
        if status != "challenge":
            return self.reply(status, f"{why}\n".encode())
        nonce = secrets.token_urlsafe(16)
        self.server.nonces.add(nonce)
        context = CONTEXT.replace('"', '\\"')
        challenge = f'PKeyAuth nonce="{nonce}", Version="1.0", Context="{context}"'
        for name, key in (("CertAuthorities", "authorities"), ("SupportedAlgs", "algorithms")):
            if control[key]:
                challenge += f', {name}="{control[key]}"'
        self.reply(control["status"], b"which device?\n", [("WWW-Authenticate", challenge)])

    def ask(self, go):
        announced = self.headers["User-Agent"].endswith(" PKeyAuth/1.0")
        asks = announced or self.server.control["insists"]
        self.server.log({
            "method": self.command, "path": self.path, "status": 302, "announced": ["1.0"] if announced else [],
            "why": None, "auth": self.headers.get("Authorization"), "body": 0, "parameters": None,
        })
        if not asks:
            return self.reply(302, b"", [("Location", go)])
        nonce = secrets.token_urlsafe(16)
        self.server.nonces.add(nonce)
        control = self.server.control
        submit = f"https://{self.headers['Host']}/submit?" + urllib.parse.urlencode({"go": go})
        parameters = {
            "Nonce": nonce, "Context": CONTEXT, "Version": "1.0", "SubmitUrl": control["submit"] or submit,
        }
        for name, key in (("CertAuthorities", "authorities"), ("SupportedAlgs", "algorithms")):
            if control[key]:
                parameters[name] = urllib.parse.unquote(control[key])
        self.reply(302, b"", [("Location", "urn:http-auth:PKeyAuth?" + urllib.parse.urlencode(parameters))])

    def judge(self, value, announced):
        if announced != ["1.0"]:
            return 403, "not announced"
        if value is None:
            return "challenge", None
        scheme, _, rest = value.partition(" ")
        parameters = dict(PARAMETER.findall(rest))
        if scheme != "PKeyAuth" or "".join(f'{k}="{v}", ' for k, v in parameters.items())[:-2] != rest:
            return 400, "syntax"
        if parameters.get("Context") != CONTEXT.replace('"', '\\"') or parameters.get("Version") != "1.0":
            return 400, "context"
        if "AuthToken" not in parameters:
            return 200, "unknown device"
        url = f"https://{self.headers['Host']}{self.path.partition('?')[0]}"
        try:
            algorithm, subject = verify(
                parameters["AuthToken"], self.server.nonces, self.server.control["authority"] or url)
        except (ValueError, KeyError, InvalidSignature) as error:
            return 400, f"forged: {error!r}"
        return 200, f"{algorithm} {subject}"


class Server(ControlledServer):
    defaults = {
        "status": 401, "authorities": None, "algorithms": None, "authority": None, "insists": False, "submit": None,
    }


server = Server(Handler, *sys.argv[1:5])
server.nonces = set()
server.run()
