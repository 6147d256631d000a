# SPDX-License-Identifier: Apache-2.0
"""A client that authenticates itself with NTLM, through pyspnego.

ntlm_client.py PORT SCHEME USER PASSWORD BINDING [ANCHORS|- [PROXYPORT]]
BINDING is right, wrong or none. With ANCHORS it uses TLS. Prints the status and the user.
"""

import base64
import hashlib
import http.client
import ssl
import sys

import spnego
from cryptography import x509
from spnego.channel_bindings import GssChannelBindings

port, scheme, user, password, binding, anchors, proxy = (sys.argv[1:] + ["-", "-"])[:7]
is_tls = anchors != "-"
site = f"http://own.test.localhost:{port}" if proxy != "-" and not is_tls else ""
place = ("127.0.0.1", int(port if proxy == "-" else proxy))
if is_tls:
    context = ssl.create_default_context(cafile=anchors)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(*place, context=context, timeout=20)
    if proxy != "-":
        connection.set_tunnel("own.test.localhost", int(port))
else:
    connection = http.client.HTTPConnection(*place, timeout=20)
connection.connect()

bindings = None
if binding != "none" and is_tls:
    der = connection.sock.getpeercert(binary_form=True)
    name = x509.load_der_x509_certificate(der).signature_hash_algorithm.name
    data = hashlib.new(name, der if binding == "right" else der + b"x").digest()
    bindings = GssChannelBindings(application_data=b"tls-server-end-point:" + data)

client = spnego.client(
    user,
    password,
    "origin.test.localhost",
    "HTTP",
    protocol="ntlm" if scheme == "NTLM" else "negotiate",
    options=spnego.NegotiateOptions.use_ntlm if scheme == "NTLM" else spnego.NegotiateOptions.use_negotiate,
    channel_bindings=bindings,
)
token = client.step()
while True:
    connection.request("GET", site + "/echo", headers={"Authorization": f"{scheme} {base64.b64encode(token).decode()}"})
    response = connection.getresponse()
    response.read()
    field = response.getheader("WWW-Authenticate") or ""
    answer = field[len(scheme) + 1 :]
    if response.status != 401 or not answer:
        break
    token = client.step(base64.b64decode(answer))
print(response.status, response.getheader("X-User"))
