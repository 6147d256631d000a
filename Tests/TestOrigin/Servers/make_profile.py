# SPDX-License-Identifier: Apache-2.0
"""make_profile.py: a configuration profile in XML from a JSON object on standard input, as Python's plistlib writes it.

An object {"file": PATH} stands for the bytes of a file, and {"der": PATH} for those of the first certificate in it.
"""

import json
import plistlib
import ssl
import sys


def converted(value):
    if isinstance(value, list):
        return [converted(element) for element in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"file"}:
        with open(value["file"], "rb") as file:
            return file.read()
    if set(value) == {"der"}:
        with open(value["der"], encoding="ascii") as file:
            text = file.read()
        end = "-----END CERTIFICATE-----"
        return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN") : text.index(end) + len(end)] + "\n")
    return {key: converted(element) for key, element in value.items()}


sys.stdout.buffer.write(plistlib.dumps(converted(json.load(sys.stdin))))
