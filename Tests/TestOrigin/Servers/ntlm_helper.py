# SPDX-License-Identifier: Apache-2.0
"""Verifies NTLM for squid, through pyspnego: an authentication helper like Samba's ntlm_auth.

Usage: ntlm_helper.py USERS [CERTIFICATE]
USERS: a file with lines DOMAIN:USER:PASSWORD. CERTIFICATE: answers must be bound to TLS with it.

Squid sends `YR TOKEN` and `KK TOKEN` for the two messages of a client, and gets `TT TOKEN` and `AF USER` or `NA`.
"""
import base64
import os
import sys

os.environ["NTLM_USER_FILE"] = sys.argv[1]

import spnego  # noqa: E402
from origin import end_point_binding, strict_fault  # noqa: E402

binding = end_point_binding(sys.argv[2]) if len(sys.argv) > 2 else None
server = None
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == "YR":
            server = spnego.server(protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm, channel_bindings=binding)
            print("TT", base64.b64encode(server.step(base64.b64decode(words[1]))).decode(), flush=True)
        else:
            token = base64.b64decode(words[1])
            fault = strict_fault(token, 0, binding)
            if fault is not None:
                raise ValueError(fault)
            server.step(token)
            print("AF", server.client_principal.split("\\")[-1], flush=True)
    except Exception as error:
        print("NA", str(error).replace("\n", " "), flush=True)
