# SPDX-License-Identifier: Apache-2.0
"""make_pki.py FOLDER: creates the certificates of one test run, all P-256.

origin-ca, other-ca, client-ca-a, client-ca-b        NAME.pem, NAME.key
server, server-sha384, server-localhost              valid for *.test.localhost; signed with SHA-384; for localhost
server-expired, server-name, server-other, server-self   expired, for another name, from an unknown CA, self-signed
laptop (client-ca-a), badge (client-ca-b)            client identities, also as NAME.p12; p12.password has the password
"""

import datetime
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER = sys.argv[1]
PASSWORD = "kanarie-p12-51c2"
NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


def save(name, key, chain):
    with open(os.path.join(FOLDER, name + ".pem"), "wb") as file:
        for certificate in chain:
            file.write(certificate.public_bytes(serialization.Encoding.PEM))
    with open(os.path.join(FOLDER, name + ".key"), "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


def issue(name, issuer=None, ca=False, names=(), usage=None, begin=-1, end=30, digest=None):
    """Creates a certificate and its key. `issuer` is (certificate, key), or None for self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Test"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    signer = issuer or (None, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer[0] else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + begin * DAY)
        .not_valid_after(NOW + end * DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(
            x509.KeyUsage(not ca, False, False, False, False, ca, ca, False, False),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer[1].public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    certificate = builder.sign(signer[1], digest or hashes.SHA256())
    save(name, key, [certificate])
    return certificate, key


def server(name, issuer, names=("test.localhost", "*.test.localhost"), **options):
    return issue(name, issuer, names=names, usage=ExtendedKeyUsageOID.SERVER_AUTH, **options)


def client(name, issuer):
    certificate, key = issue(name, issuer, usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    with open(os.path.join(FOLDER, name + ".p12"), "wb") as file:
        file.write(pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [issuer[0]], encryption))


origin_ca = issue("origin-ca", ca=True, end=60)
other_ca = issue("other-ca", ca=True, end=60)
server("server", origin_ca)
server("server-sha384", origin_ca, digest=hashes.SHA384())
server("server-expired", origin_ca, begin=-20, end=-10)
server("server-name", origin_ca, names=("elsewhere.test.localhost",))
server("server-localhost", origin_ca, names=("localhost",))
server("server-other", other_ca)
server("server-self", None)
client("laptop", issue("client-ca-a", ca=True, end=60))
client("badge", issue("client-ca-b", ca=True, end=60))
with open(os.path.join(FOLDER, "p12.password"), "w", encoding="utf-8") as password:
    password.write(PASSWORD)
