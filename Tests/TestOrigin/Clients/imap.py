# SPDX-License-Identifier: Apache-2.0
"""Signs in at an IMAP server with the initial response on standard input, in base64, and selects the inbox.

Usage: imap.py PORT MECHANISM    Prints the server's answers.
"""

import base64
import imaplib
import sys

response = base64.b64decode(sys.stdin.read(), validate=False)
client = imaplib.IMAP4("127.0.0.1", int(sys.argv[1]))
try:
    print(client.authenticate(sys.argv[2], lambda challenge: response)[0], client.select()[0])
except imaplib.IMAP4.error as error:
    sys.exit(str(error))
