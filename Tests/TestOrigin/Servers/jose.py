# SPDX-License-Identifier: Apache-2.0
"""Verifies the JSON Web Signatures that clients send, for the servers of the tests."""

import base64
import hashlib
import json

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding

CURVES = {"ES256": (ec.SECP256R1, hashes.SHA256, 32), "ES384": (ec.SECP384R1, hashes.SHA384, 48)}


class Refused(Exception):
    """The reason, as a short sentence."""


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    if "=" in text:
        raise Refused("padded base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def parts(token):
    """Header, claims, the signed bytes and the signature."""
    pieces = token.split(".")
    if len(pieces) != 3:
        raise Refused("not three parts")
    try:
        return json.loads(unb64(pieces[0])), json.loads(unb64(pieces[1])), token.rpartition(".")[0], unb64(pieces[2])
    except ValueError as error:
        raise Refused("not base64url of JSON") from error


def verify(key, algorithm, signed, signature):
    message = signed.encode()
    try:
        if algorithm in CURVES and isinstance(key, ec.EllipticCurvePublicKey):
            curve, digest, size = CURVES[algorithm]
            if not isinstance(key.curve, curve) or len(signature) != 2 * size:
                raise Refused("another curve or length")
            numbers = (int.from_bytes(half, "big") for half in (signature[:size], signature[size:]))
            key.verify(utils.encode_dss_signature(*numbers), message, ec.ECDSA(digest()))
        elif algorithm == "RS256" and isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
        elif algorithm == "PS256" and isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        else:
            raise Refused(f"the algorithm {algorithm} is not of the key")
    except InvalidSignature as error:
        raise Refused("a wrong signature") from error


class Assertions:
    """Client assertions (RFC 7523 §3), each of which is accepted once."""

    def __init__(self):
        self.seen = set()

    def check(self, assertion, certificate, audience, client, now, algorithms=None):
        """Returns the algorithm; raises Refused. `certificate` is PEM."""
        certificate = x509.load_pem_x509_certificate(certificate)
        header, claims, signed, signature = parts(assertion)
        der = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
        if header.get("x5t#S256") != b64(der):
            raise Refused("another certificate")
        if header.get("typ") != "JWT" or "kid" in header:
            raise Refused("a header that Keycloak or Microsoft's provider would refuse")
        if algorithms and header["alg"] not in algorithms:
            raise Refused("an algorithm that is not supported")
        verify(certificate.public_key(), header["alg"], signed, signature)
        if claims["iss"] != client or claims["sub"] != client:
            raise Refused("another client")
        if claims["aud"] != audience:
            raise Refused(f"another audience than {audience}: {claims['aud']}")
        if not now - 60 <= claims["iat"] <= now + 60 or not now < claims["exp"] <= now + 300:
            raise Refused("out of time")
        if len(claims["jti"]) < 22 or claims["jti"] in self.seen:
            raise Refused("a jti that is short, or there again")
        self.seen.add(claims["jti"])
        return header["alg"]


def thumbprint(key):
    """RFC 7638 §3."""
    text = json.dumps({name: key[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"), sort_keys=True)
    return b64(hashlib.sha256(text.encode()).digest())


class Proofs:
    """Proofs of possession (RFC 9449 §4.3), each of which is accepted once."""

    def __init__(self):
        self.seen = set()

    def check(self, values, method, url, now, token=None, nonce=None):
        """Returns the thumbprint of the key; raises Refused, with "use_dpop_nonce" if only the nonce is missing or
        another. `values` are those of the fields, and `url` has no query. `nonce` may be a set of nonces, each of which
        is accepted once."""
        if len(values) != 1:
            raise Refused(f"{len(values)} proofs")
        header, claims, signed, signature = parts(values[0])
        key = header["jwk"]
        if header["typ"] != "dpop+jwt" or header["alg"] != "ES256" or set(key) != {"kty", "crv", "x", "y"}:
            raise Refused("another type, algorithm or key")
        numbers = ec.EllipticCurvePublicNumbers(
            int.from_bytes(unb64(key["x"]), "big"), int.from_bytes(unb64(key["y"]), "big"), ec.SECP256R1())
        verify(numbers.public_key(), "ES256", signed, signature)
        if claims["htm"] != method or claims["htu"] != url:
            raise Refused(f"a proof for {claims['htm']} {claims['htu']}, not {method} {url}")
        if not now - 60 <= claims["iat"] <= now + 60:
            raise Refused("out of time")
        hashed = token and b64(hashlib.sha256(token.encode()).digest())
        if claims.get("ath") != hashed:
            raise Refused("another token")
        if len(claims["jti"]) < 22 or claims["jti"] in self.seen:
            raise Refused("a jti that is short, or there again")
        self.seen.add(claims["jti"])
        if isinstance(nonce, set):
            if claims.get("nonce") not in nonce:
                raise Refused("use_dpop_nonce")
            nonce.remove(claims["nonce"])
        elif nonce and claims.get("nonce") != nonce:
            raise Refused("use_dpop_nonce")
        return thumbprint(key)
