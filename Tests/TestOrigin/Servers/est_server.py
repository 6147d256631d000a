# SPDX-License-Identifier: Apache-2.0
"""est_server.py FOLDER [PORT | make]: an EST server (RFC 7030) for tests. It uses the openssl command for certificates.

The server reads FOLDER/control.json before every connection and every request, so a test can replace it at any time.
DEFAULTS lists the keys with their defaults. The server appends a JSON object for each request or failed handshake to
FOLDER/requests, and stores the last certificate request in DER as FOLDER/last.csr. It creates missing authorities in
FOLDER: ca.pem, new-ca.pem and other-ca.pem with their .key, cross certificates NAME-by-old and NAME-by-new for a key
rollover from ca to new-ca, and server.pem. With `make` it creates them and exits. Prints `listening PORT`.
"""

import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

from OpenSSL import SSL, crypto

FOLDER = sys.argv[1]

DEFAULTS = {
    "issuer": "ca",  # the authority that issues: ca, new-ca, other-ca
    "cacerts": ["ca"],  # the names of the certificates in /cacerts, in their order
    "label": None,  # the only label served
    "server": "server",  # the certificate that the server presents
    "tls": None,  # only 1.2 or only 1.3
    "curve": None,  # the only curve, such as prime256v1; libest then ends TLS 1.2 handshakes with other client keys
    "tickets": 2,  # number of session tickets in TLS 1.3
    "clientCertificate": "none",  # none, optional, required
    "clientAuthorities": ["ca"],  # accepted issuers of client certificates
    "hangsUp": False,  # close the connection without an alert when it has the client certificate
    "alert": None,  # number of an alert to send for other client certificates than those in alertUnless; only TLS 1.2
    "alertUnless": [],  # hexadecimal serial numbers
    "revoked": [],  # hexadecimal serial numbers that get the alert certificate_revoked
    "auth": None,  # basic, digest, digest-sha256, both, bearer, bearer-basic, negotiate, or None for no password
    "tokens": "canary-access-",  # what an access token has to begin with
    "authFor": ["csrattrs", "simpleenroll", "simplereenroll"],  # operations that require it
    "certificateIsEnough": True,  # a client certificate replaces the password
    "user": "jdoe",
    "password": "kanarie-est-7f10",
    "staleNonces": False,  # reject every Digest response as stale
    "csrattrs": None,  # body of /csrattrs in base64, None for a 204, or another status
    "attributesTail": "",  # text after the base64 of /csrattrs; libest sends a NUL
    "linking": False,  # require the channel binding as challengePassword
    "pending": 0,  # number of 202 responses before a certificate, per public key
    "retryAfter": "1",  # value of Retry-After, or None for no such field
    "days": 30,  # lifetime of certificates; or notBefore and notAfter in the format of openssl ca
    "notBefore": None,
    "notAfter": None,
    "usage": "clientAuth",
    "chain": False,  # send the issuer with the certificate
    "lineBreaks": "crlf",  # line breaks in base64: none, lf, crlf
    "needsLines": False,  # read a request's base64 only in lines, with OpenSSL's decoder, as libest does
    "close": False,  # send Connection: close with every response
    "fault": None,  # see FAULTS
    "faultFor": None,  # limit the fault to this operation
    "faultAfter": 0,  # number of certificates to issue before the fault
}

FAULTS = """
html empty-pkcs7 other-key other-ca pem der not-base64 no-type wrong-type huge endless 500 503 403 302 401-forever
401-cut not-http http-0.9 cut-before-status cut-inside-status cut-inside-head cut-inside-body reset slow junk-pkcs7
"""


def openssl(*arguments, data=None):
    done = subprocess.run(["openssl", *arguments], input=data, capture_output=True, cwd=FOLDER, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def path(name):
    return os.path.join(FOLDER, name)


def read(name):
    with open(path(name), "rb") as file:
        return file.read()


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)


def control():
    values = dict(DEFAULTS)
    try:
        values.update(json.loads(read("control.json")))
    except (FileNotFoundError, json.JSONDecodeError):
        pass
    unknown = set(values) - set(DEFAULTS)
    if unknown:
        raise SystemExit(f"unknown keys in control.json: {unknown}")
    return values


# Certificates

AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"


def make_key(name):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key")


def certify(name, key, subject, issuer, extensions, days):
    """Creates NAME.pem for KEY.key, signed by the issuer or self-signed."""
    write(f"{name}.ext", extensions + ("authorityKeyIdentifier=keyid:always\n" if issuer else ""))
    openssl("req", "-new", "-key", f"{key}.key", "-subj", subject, "-out", f"{name}.req")
    signer = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key"] if issuer else ["-signkey", f"{key}.key"]
    serial = str(int.from_bytes(os.urandom(12), "big") | 1)
    openssl(
        "x509", "-req", "-in", f"{name}.req", *signer, "-days", str(days), "-sha256", "-set_serial", serial,
        "-extfile", f"{name}.ext", "-out", f"{name}.pem",
    )


def make_authorities():
    est, other = "/O=Test/CN=EST CA", "/O=Test/CN=Other CA"
    for name, subject in [("ca", est), ("new-ca", est), ("other-ca", other)]:
        make_key(name)
        certify(name, name, subject, None, AUTHORITY, 3650)
    make_key("sub-ca")
    certify("sub-ca", "sub-ca", "/O=Test/CN=EST Sub CA", "ca", AUTHORITY, 3650)
    certify("new-by-old", "new-ca", "/O=Test/CN=EST CA", "ca", AUTHORITY, 3650)
    certify("third-by-old", "other-ca", "/O=Test/CN=EST CA", "ca", AUTHORITY, 3650)
    certify("old-by-new", "ca", "/O=Test/CN=EST CA", "new-ca", AUTHORITY, 3650)
    leaf = (
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
        "subjectKeyIdentifier=hash\n"
    )
    names = leaf + "subjectAltName=DNS:est.test.localhost,DNS:localhost,IP:127.0.0.1\n"
    for name, issuer, extensions in [
        ("server", "ca", names), ("server-other", "other-ca", names), ("server-new", "new-ca", names),
        ("server-name", "ca", leaf + "subjectAltName=DNS:elsewhere.test.localhost\n"),
    ]:
        make_key(name)
        certify(name, name, f"/O=Test/CN={name}", issuer, extensions, 3650)


def check_request(csr):
    """Verifies the certificate request with openssl and returns its text."""
    with open(path("last.csr"), "wb") as file:
        file.write(csr)
    return openssl("req", "-inform", "DER", "-verify", "-noout", "-text", data=csr).decode()


def issue(csr, values, name):
    """Issues a certificate with `openssl ca` and returns it in PEM."""
    issuer = "other-ca" if name == "other-ca" else values["issuer"]
    folder = f"issue-{threading.get_ident()}-{time.monotonic_ns()}"
    os.mkdir(path(folder))
    write(f"{folder}/index", "")
    write(f"{folder}/request.pem", pem(csr, "CERTIFICATE REQUEST"))
    write(
        f"{folder}/ca.conf",
        "[ca]\ndefault_ca=d\n[d]\n"
        f"dir={path(folder)}\ndatabase={path(folder)}/index\nnew_certs_dir={path(folder)}\nrand_serial=yes\n"
        f"certificate={path(issuer)}.pem\nprivate_key={path(issuer)}.key\ndefault_md=sha256\npolicy=p\n"
        "copy_extensions=copy\nx509_extensions=x\npreserve=yes\nunique_subject=no\n"
        "[p]\ncountryName=optional\norganizationName=optional\norganizationalUnitName=optional\ncommonName=optional\n"
        "serialNumber=optional\nemailAddress=optional\n"
        "[x]\nbasicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n"
        f"keyUsage=critical,digitalSignature\nextendedKeyUsage={values['usage']}\n",
    )
    dates = ["-days", str(values["days"])]
    if values["notAfter"]:
        dates = ["-startdate", values["notBefore"] or "20200101000000Z", "-enddate", values["notAfter"]]
    openssl(
        "ca", "-config", f"{folder}/ca.conf", "-in", f"{folder}/request.pem", "-out", f"{folder}/leaf.pem", "-notext",
        "-batch", *dates,
    )
    return read(f"{folder}/leaf.pem").decode()


def pem(der, label):
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"


def certs_only(*pems):
    """A PKCS#7 without signatures in DER, from `openssl crl2pkcs7`."""
    arguments = []
    name = f"p7-{threading.get_ident()}-{time.monotonic_ns()}"
    write(name, "".join(pems))
    if pems:
        arguments = ["-certfile", name]
    return openssl("crl2pkcs7", "-nocrl", "-outform", "DER", *arguments)


# Connections


class Connection:
    """One TLS connection: reads requests, writes responses."""

    def __init__(self, server, raw, values):
        self.server = server
        self.raw = raw
        self.values = values
        self.buffer = b""
        context = SSL.Context(SSL.TLS_METHOD)
        context.set_min_proto_version(SSL.TLS1_3_VERSION if values["tls"] == "1.3" else SSL.TLS1_2_VERSION)
        if values["tls"] == "1.2":
            context.set_max_proto_version(SSL.TLS1_2_VERSION)
        context.set_session_id(b"est")
        context.use_certificate_file(path(values["server"] + ".pem"))
        context.use_privatekey_file(path(values["server"] + ".key"))
        if values["curve"]:
            context.set_tmp_ecdh(crypto.get_elliptic_curve(values["curve"]))
        if values["tickets"] == 0:
            SSL._lib.SSL_CTX_set_options(context._context, 1 << 14)  # SSL_OP_NO_TICKET
            setter = getattr(SSL._lib, "SSL_CTX_set_num_tickets", None)
            if setter:
                setter(context._context, 0)
        if values["clientCertificate"] != "none":
            store = context.get_cert_store()
            for name in values["clientAuthorities"]:
                store.add_cert(crypto.X509.from_cryptography(load(name)))
            mode = SSL.VERIFY_PEER
            if values["clientCertificate"] == "required":
                mode |= SSL.VERIFY_FAIL_IF_NO_PEER_CERT
            context.set_verify(mode, self.judge)
            if values["revoked"]:
                store.set_flags(crypto.X509StoreFlags.CRL_CHECK)
                for name in values["clientAuthorities"]:
                    store.add_crl(revocation_list(name, values["revoked"]))
        self.tls = SSL.Connection(context, raw)
        self.tls.set_accept_state()

    def judge(self, connection, certificate, error, depth, passed):
        if self.values["hangsUp"]:
            self.raw.shutdown(socket.SHUT_RDWR)
        serial = f"{certificate.get_serial_number():X}"
        accepted = [text.lstrip("0").upper() for text in self.values["alertUnless"]]
        if depth == 0 and self.values["alert"] and serial not in accepted:
            # Not encrypted yet in TLS 1.2 (RFC 5246 section 7.2).
            self.raw.sendall(bytes([21, 3, 3, 0, 2, 2, self.values["alert"]]))
            self.raw.shutdown(socket.SHUT_RDWR)
            return False
        return bool(passed)

    def handshake(self):
        self.tls.do_handshake()

    @property
    def client(self):
        certificate = self.tls.get_peer_certificate()
        if certificate is None:
            return None
        return certificate.to_cryptography().subject.rfc4514_string()

    def binding(self):
        """The channel binding in base64, as the server computes it."""
        if self.tls.get_protocol_version() == 0x0304:
            return base64.b64encode(self.tls.export_keying_material(b"EXPORTER-Channel-Binding", 32, b"")).decode()
        return base64.b64encode(self.tls.get_peer_finished()).decode()

    def read_until(self, end):
        while end not in self.buffer:
            try:
                self.buffer += self.tls.recv(65536)
            except SSL.ZeroReturnError:
                return None
        head, self.buffer = self.buffer.split(end, 1)
        return head

    def read_body(self, length):
        while len(self.buffer) < length:
            self.buffer += self.tls.recv(65536)
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return body

    def request(self):
        """Returns (method, path, fields, body), or None at the end."""
        head = self.read_until(b"\r\n\r\n")
        if head is None:
            return None
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        fields = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            fields[name.strip().lower()] = value.strip()
        return method, target, fields, self.read_body(int(fields.get("content-length", "0")))

    def send(self, data):
        self.tls.sendall(data)

    def respond(self, status, fields, body=b""):
        head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Status'}\r\n"
        fields = dict(fields)
        if status != 204:
            fields["Content-Length"] = len(body)
        if self.values["close"]:
            fields["Connection"] = "close"
        for name, value in fields.items():
            for one in value if isinstance(value, list) else [value]:
                head += f"{name}: {one}\r\n"
        self.send(head.encode() + b"\r\n" + body)

    def close(self, reset=False):
        if reset:
            self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        else:
            try:
                self.tls.shutdown()
            except SSL.Error:
                pass
        self.raw.close()


def load(name):
    from cryptography import x509

    return x509.load_pem_x509_certificate(read(f"{name}.pem"))


def revocation_list(name, serials):
    """A CRL with these serial numbers, from `openssl ca -gencrl`."""
    from cryptography import x509

    folder = f"crl-{threading.get_ident()}-{time.monotonic_ns()}"
    os.mkdir(path(folder))
    lines = "".join(f"R\t491231235959Z\t200101000000Z\t{serial.upper()}\tunknown\t/CN=revoked\n" for serial in serials)
    write(f"{folder}/index", lines)
    write(
        f"{folder}/ca.conf",
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={path(folder)}/index\ncertificate={path(name)}.pem\n"
        f"private_key={path(name)}.key\ndefault_md=sha256\ndefault_crl_days=3650\n",
    )
    text = openssl("ca", "-gencrl", "-config", f"{folder}/ca.conf")
    return x509.load_pem_x509_crl(text)


class Server:
    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(64)
        self.lock = threading.Lock()
        self.waited = {}
        self.nonces = set()
        self.issued = 0
        self.connections = 0
        self.log_file = open(path("requests"), "a", encoding="utf-8")

    def log(self, **entry):
        with self.lock:
            self.log_file.write(json.dumps(entry) + "\n")
            self.log_file.flush()

    def serve(self):
        print("listening", self.socket.getsockname()[1], flush=True)
        while True:
            raw, _ = self.socket.accept()
            self.connections += 1
            threading.Thread(target=self.converse, args=(raw, self.connections), daemon=True).start()

    def converse(self, raw, number):
        values = control()
        connection = Connection(self, raw, values)
        try:
            connection.handshake()
        except (SSL.Error, OSError) as error:
            self.log(connection=number, handshake=repr(error))
            raw.close()
            return
        try:
            while True:
                request = connection.request()
                if request is None:
                    break
                connection.values = control()
                exchange = Exchange(self, connection, number, *request)
                try:
                    exchange.answer()
                except Cut as cut:
                    exchange.log("cut")
                    connection.close(reset=cut.reset)
                    return
                if connection.values["close"]:
                    break
            connection.close()
        except (SSL.Error, OSError) as error:
            self.log(connection=number, broken=repr(error))
            raw.close()


class Cut(Exception):
    """Ends the connection."""

    def __init__(self, reset=False):
        super().__init__()
        self.reset = reset


class Exchange:
    """One request and its response."""

    def __init__(self, server, connection, number, method, target, fields, body):
        self.server = server
        self.connection = connection
        self.values = connection.values
        self.number = number
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
        self.user = None
        self.linked = None
        self.operation = target.rsplit("/", 1)[-1]

    @property
    def fault(self):
        only = self.values["faultFor"]
        if self.server.issued < self.values["faultAfter"]:
            return None
        return self.values["fault"] if only is None or only == self.operation else None

    def log(self, status):
        self.server.log(
            connection=self.number, method=self.method, path=self.target, operation=self.operation, status=status,
            user=self.user, client=self.connection.client, linked=self.linked,
            tls=self.connection.tls.get_protocol_version_name(),
            authorization=self.fields.get("authorization", "").split(" ")[0], body=len(self.body),
            contentType=self.fields.get("content-type"),
        )

    def respond(self, status, fields=None, body=b""):
        self.log(status)
        self.connection.respond(status, fields or {}, body)

    def refuse(self, status, text):
        self.respond(status, {"Content-Type": "text/plain"}, text.encode())

    def answer(self):
        label = self.values["label"]
        prefix = "/.well-known/est/" + (label + "/" if label else "")
        if self.target not in [prefix + name for name in ("cacerts", "csrattrs", "simpleenroll", "simplereenroll")]:
            return self.refuse(404, "no such operation")
        if self.operation in self.values["authFor"] and not self.is_authenticated():
            return None
        if self.fault and self.misbehave():
            return None
        if self.operation == "cacerts":
            pems = [read(f"{name}.pem").decode() for name in self.values["cacerts"]]
            return self.certificates(certs_only(*pems))
        if self.operation == "csrattrs":
            return self.attributes()
        return self.enroll()

    # Authentication

    def is_authenticated(self):
        kind = self.values["auth"]
        if self.fault == "401-forever" or self.fault == "401-cut" and "authorization" not in self.fields:
            self.challenge(kind or "basic")
            return False
        if self.fault == "401-cut":
            self.connection.send(
                b"HTTP/1.1 401 Status\r\nWWW-Authenticate: Basic realm=\"est\"\r\nContent-Length: 900\r\n\r\nno"
            )
            raise Cut()
        if kind is None or (self.connection.client and self.values["certificateIsEnough"]):
            return True
        given = self.fields.get("authorization", "")
        scheme, _, rest = given.partition(" ")
        if scheme.lower() == "basic" and kind in ("basic", "both", "bearer-basic"):
            user, _, password = base64.b64decode(rest).decode().partition(":")
            if (user, password) == (self.values["user"], self.values["password"]):
                self.user = user
                return True
        if scheme.lower() == "bearer" and kind in ("bearer", "bearer-basic"):
            if rest.startswith(self.values["tokens"]):
                self.user = "token"
                return True
        if scheme.lower() == "digest" and kind.startswith(("digest", "both")):
            return self.is_digest_good(rest, kind)
        self.challenge(kind)
        return False

    def is_digest_good(self, rest, kind):
        found = re.findall(r'(\w+)=(?:"([^"]*)"|([^,\s]+))', rest)
        parts = {name: quoted or plain for name, quoted, plain in found}
        digest = hashlib.sha256 if parts.get("algorithm", "MD5").upper() == "SHA-256" else hashlib.md5

        def hashed(text):
            return digest(text.encode()).hexdigest()

        first = hashed(f"{self.values['user']}:est:{self.values['password']}")
        second = hashed(f"{self.method}:{self.target}")
        wanted = hashed(":".join([first, parts["nonce"], parts["nc"], parts["cnonce"], parts["qop"], second]))
        known = parts["nonce"] in self.server.nonces and parts["uri"] == self.target
        if self.values["staleNonces"]:
            self.challenge(kind, stale=True)
            return False
        if known and parts["username"] == self.values["user"] and parts["response"] == wanted:
            self.user = parts["username"]
            return True
        self.challenge(kind)
        return False

    def challenge(self, kind, stale=False):
        nonce = os.urandom(12).hex()
        self.server.nonces.add(nonce)
        tail = ", stale=true" if stale else ""
        digest = [f'Digest realm="est", qop="auth", nonce="{nonce}", algorithm=MD5{tail}']
        if kind == "digest-sha256":
            digest = [f'Digest realm="est", qop="auth", nonce="{nonce}", algorithm=SHA-256{tail}']
        offers = {
            "basic": ['Basic realm="est"'], "both": ['Basic realm="est"'] + digest, "digest": digest,
            "digest-sha256": digest, "negotiate": ["Negotiate"], "bearer": ['Bearer realm="est"'],
            "bearer-basic": ['Basic realm="est"', 'Bearer realm="est"'],
        }[kind]
        self.respond(401, {"WWW-Authenticate": offers, "Content-Type": "text/plain"}, b"authentication required")

    # Operations

    def encoded(self, der):
        if self.values["lineBreaks"] == "none":
            return base64.b64encode(der)
        text = base64.encodebytes(der)
        return text if self.values["lineBreaks"] == "lf" else text.replace(b"\n", b"\r\n")

    def certificates(self, der):
        self.respond(200, {"Content-Type": "application/pkcs7-mime; smime-type=certs-only"}, self.encoded(der))

    def attributes(self):
        content = self.values["csrattrs"]
        if content is None:
            return self.respond(204)
        if isinstance(content, int):
            return self.refuse(content, "no attributes")
        body = self.encoded(base64.b64decode(content)) + self.values["attributesTail"].encode()
        return self.respond(200, {"Content-Type": "application/csrattrs"}, body)

    def request(self):
        """The request in DER. White space in its base64 is tolerated (RFC 8951 §3.1)."""
        if self.values["needsLines"]:
            return openssl("base64", "-d", data=self.body)
        return base64.b64decode(b"".join(self.body.split()), validate=True)

    def enroll(self):
        if self.fields.get("content-type") != "application/pkcs10":
            return self.refuse(415, "not a PKCS#10 request")
        try:
            csr = self.request()
            text = check_request(csr)
        except (ValueError, RuntimeError) as error:
            return self.refuse(400, f"invalid request: {error}")
        found = re.search(r"challengePassword\s*:\s*(\S+)", text)
        self.linked = None if found is None else found.group(1) == self.connection.binding()
        if self.values["linking"] and not self.linked:
            return self.refuse(400, "the request is not linked to this connection")
        key = openssl("req", "-inform", "DER", "-pubkey", "-noout", data=csr)
        waited = self.server.waited.get(key, 0)
        if waited < self.values["pending"]:
            self.server.waited[key] = waited + 1
            fields = {"Content-Type": "text/plain"}
            if self.values["retryAfter"] is not None:
                fields["Retry-After"] = self.values["retryAfter"]
            return self.respond(202, fields, b"waiting for approval")
        if self.operation == "simplereenroll" and not self.connection.client and not self.user:
            return self.refuse(403, "authentication required")
        if self.fault == "other-key":
            make_key("stranger")
            csr = openssl("req", "-new", "-key", "stranger.key", "-subj", "/CN=stranger", "-outform", "DER")
        issuer = "other-ca" if self.fault == "other-ca" else self.values["issuer"]
        pems = [issue(csr, self.values, issuer)]
        self.server.issued += 1
        if self.values["chain"]:
            pems.append(read(f"{issuer}.pem").decode())
        return self.certificates(certs_only(*pems))

    # Faults

    def misbehave(self):
        """Responds with the configured fault. Returns False if there is none."""
        fault = self.fault
        pkcs7 = {"Content-Type": "application/pkcs7-mime; smime-type=certs-only"}
        good = certs_only(read("ca.pem").decode())
        bodies = {
            "html": ({"Content-Type": "text/html"}, b"<!DOCTYPE html>\n<html><head><title>Login</title></head></html>"),
            "empty-pkcs7": (pkcs7, self.encoded(certs_only())),
            "junk-pkcs7": (pkcs7, self.encoded(b"\x30\x03\x02\x01\x05")),
            "pem": (pkcs7, pem(good, "PKCS7").encode()),
            "der": (pkcs7, good),
            "not-base64": (pkcs7, b"!!! not base64 !!!"),
            "no-type": ({}, self.encoded(good)),
            "wrong-type": ({"Content-Type": "application/octet-stream"}, self.encoded(good)),
            "huge": (pkcs7, b"QUJD" * (512 * 1024)),
        }
        if fault in bodies:
            self.respond(200, *bodies[fault])
            return True
        if fault in ("500", "503", "403"):
            fields = {"Content-Type": "text/plain"}
            if fault == "503":
                fields["Retry-After"] = "120"
            self.respond(int(fault), fields, b"the authority is out of order")
            return True
        if fault == "302":
            self.respond(302, {"Location": "https://elsewhere.test.localhost/est"})
            return True
        pieces = {
            "cut-before-status": b"", "cut-inside-status": b"HTTP/1.1 20",
            "not-http": b"220 smtp.test.localhost ESMTP\r\n", "http-0.9": b"<html>old</html>",
            "cut-inside-head": b"HTTP/1.1 200 OK\r\nContent-Type: application/pk",
            "cut-inside-body": b"HTTP/1.1 200 OK\r\nContent-Type: application/pkcs7-mime\r\n"
            b"Content-Length: 900\r\n\r\nTUlJ",
            "reset": b"",
        }
        if fault in pieces:
            if pieces[fault]:
                self.connection.send(pieces[fault])
            raise Cut(reset=fault == "reset")
        if fault == "slow":
            self.log("slow")
            self.connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n")
            time.sleep(60)
            raise Cut()
        if fault == "endless":
            self.connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/pkcs7-mime\r\n\r\n")
            while True:
                self.connection.send(b"QUJD" * 16384)
        return False


def main():
    if not os.path.exists(path("ca.pem")):
        make_authorities()
    if sys.argv[2:] == ["make"]:
        return
    Server(int(sys.argv[2]) if len(sys.argv) > 2 else 0).serve()


main()
