# SPDX-License-Identifier: Apache-2.0
"""An origin that challenges for Digest (RFC 7616) and verifies every part of the answer with hashlib.

Usage: digest_origin.py CONTROL LOG CERT KEY    Prints `listening PORT`. CONTROL is a JSON object:

    user, password            the account
    realm                     (default: one with quotation marks in it)
    algorithms                one challenge each, in this order (default: ["SHA-256"])
    qop                       "auth", "auth-int", both, or null for RFC 2069 (default: "auth")
    domain, userhash, charset parameters of the challenge
    uses                      after so many requests, a nonce is stale (default: no limit)
    nextnonce                 announces another nonce with every response
    rspauth                   "right", "wrong" (as long as the right one) or null, or the proof itself (default: null)
    info                      the whole Authentication-Info
    basic                     also offers Basic, after Digest
    stale                     says that a nonce is stale (default: true)
    charset_of_account        how the account is encoded (default: "utf-8")
    others                    a path's first segment and what differs below it; each has nonces of its own

A nonce count that was used before is an error, and is never accepted. /echo answers with the method, the length and the
SHA-256 of the content. Under /forbidden/ nobody is accepted. Writes one JSON object per request to LOG.
"""

import hashlib
import json
import re
import secrets
import sys
import urllib.parse

from logging_server import ControlledServer, LoggingHandler

NAMES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}
PARAMETER = re.compile(r'\s*([\w*!#$%&\'+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')


def digest(algorithm, text):
    data = text if isinstance(text, bytes) else text.encode()
    return hashlib.new(NAMES[algorithm.removesuffix("-sess")], data).hexdigest()


def parse(text):
    """The parameters of an answer; raises ValueError for anything beyond the grammar."""
    found, at = {}, 0
    while at < len(text):
        match = PARAMETER.match(text, at)
        if not match or match[1].lower() in found:
            raise ValueError("not a list of parameters: " + text)
        value = match[3] if match[3] is not None else re.sub(r"\\(.)", r"\1", match[2])
        found[match[1].lower()] = value
        at = match.end()
    return found


def quoted(text):
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


class Handler(LoggingHandler):
    def respond(self):
        self.body = self.read_content()
        self.info = None
        self.place = "/" + self.path.split("/")[1]
        self.control = {**self.server.control, **self.server.control.get("others", {}).get(self.place, {})}
        value = self.headers.get("Authorization")
        why = "no answer" if value is None else self.fault(value)
        if why == "" and self.path.startswith("/forbidden/"):
            why = "forbidden"
        self.server.log({
            "method": self.command, "path": self.path, "auth": None if value is None else "digest", "why": why or None,
            "status": 401 if why else 200, "received": len(self.body), "authorization": value,
        })
        if why:
            is_stale = why == "stale" and self.control.get("stale", True)
            challenges = self.server.challenges(self.control, self.place, is_stale)
            return self.reply(401, why.encode(), [("WWW-Authenticate", challenge) for challenge in challenges])
        body = json.dumps({
            "method": self.command, "length": len(self.body), "sha256": hashlib.sha256(self.body).hexdigest(),
        })
        self.reply(200, body.encode(), [("Authentication-Info", self.info)] if self.info else [])

    def fault(self, value):
        """Why the answer is wrong; empty if it is right."""
        control = self.control
        scheme, _, rest = value.partition(" ")
        if scheme != "Digest":
            return "not Digest"
        answer = parse(rest)
        realm = control["realm"]
        algorithm = answer.get("algorithm", "MD5")
        if algorithm not in control["algorithms"] or answer["realm"] != realm or answer["uri"] != self.path:
            return "wrong algorithm, realm or uri"
        if answer.get("opaque") != control["opaque"]:
            return "wrong opaque"
        user = control["user"]
        if "username*" in answer:
            prefix = "UTF-8''"
            if not control.get("charset") or not answer["username*"].startswith(prefix):
                return "an encoded user that was not asked for"
            name = urllib.parse.unquote(answer["username*"][len(prefix):], errors="strict")
        elif answer.get("userhash") == "true":
            name = user if answer["username"] == digest(algorithm, f"{user}:{realm}") else "?"
        else:
            name = answer["username"].encode("latin1").decode(control["charset_of_account"], "replace")
        if bool(control.get("userhash")) != (answer.get("userhash") == "true"):
            return "userhash was not followed"
        if name != user:
            return "wrong user"
        qop = answer.get("qop")
        if (qop is None) != (control["qop"] is None) or qop and qop not in re.split(", *", control["qop"]):
            return "wrong qop"
        account = f"{user}:{realm}:{control['password']}"
        secret = digest(algorithm, account.encode(control["charset_of_account"]))
        if algorithm.endswith("-sess"):
            secret = digest(algorithm, f"{secret}:{answer['nonce']}:{answer['cnonce']}")
        middle = f":{answer['nc']}:{answer['cnonce']}:{qop}" if qop else ""
        content = ":" + digest(algorithm, self.body) if qop == "auth-int" else ""

        def response(method):
            request = digest(algorithm, f"{method}:{self.path}{content}")
            return digest(algorithm, f"{secret}:{answer['nonce']}{middle}:{request}")

        if answer["response"] != response(self.command):
            return "wrong response"
        stale = self.server.use(self.place, answer["nonce"], answer.get("nc"))
        if stale:
            return stale
        info = []
        if control.get("rspauth"):
            proof = {"right": response(""), "wrong": "0" * len(answer["response"])}.get(
                control["rspauth"], control["rspauth"])
            info += [f'rspauth="{proof}"', f'cnonce="{answer["cnonce"]}"', f"nc={answer['nc']}", f"qop={qop}"]
        if control.get("nextnonce"):
            info.append(f'nextnonce="{self.server.new_nonce(self.place)}"')
        self.info = control.get("info") or ", ".join(info)
        return ""


class Server(ControlledServer):
    defaults = {"realm": 'Test "Digest"', "algorithms": ["SHA-256"], "qop": "auth", "opaque": "the opaque",
                "charset_of_account": "utf-8"}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.nonces = {}

    def new_nonce(self, place):
        nonce = secrets.token_urlsafe(24)
        with self.lock:
            self.nonces[self.backend(place), nonce] = set()
        return nonce

    def backend(self, place):
        return place if place in self.control.get("others", {}) else None

    def use(self, place, nonce, count):
        """Takes one count of a nonce. Returns why not, or nothing."""
        with self.lock:
            used = self.nonces.get((self.backend(place), nonce))
            if used is None or len(used) >= self.control.get("uses", 1 << 30):
                return "stale"
            if count is not None and (count in used or not re.fullmatch("[0-9a-f]{8}", count)):
                return "a count was used twice"
            used.add(count or str(len(used)))
            return ""

    def challenges(self, control, place, is_stale):
        for algorithm in control["algorithms"]:
            parts = ["realm=" + quoted(control["realm"]), f'nonce="{self.new_nonce(place)}"']
            if control["opaque"] is not None:
                parts.append(f'opaque="{control["opaque"]}"')
            if algorithm != "MD5":
                parts.append(f"algorithm={algorithm}")
            if control["qop"]:
                parts.append(f'qop="{control["qop"]}"')
            if control.get("domain"):
                parts.append(f'domain="{control["domain"]}"')
            if control.get("charset"):
                parts.append("charset=UTF-8")
            if control.get("userhash"):
                parts.append("userhash=true")
            if is_stale:
                parts.append("stale=true")
            yield "Digest " + ", ".join(parts)
        if control.get("basic"):
            yield 'Basic realm="weaker"'


Server(Handler, *sys.argv[1:5]).run()
