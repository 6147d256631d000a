# SPDX-License-Identifier: Apache-2.0
"""Microsoft's sign-in page in a network of its own, as far as a header of the identity broker concerns it.

Usage: broker_page.py LOG CERT KEY    In a network namespace whose loopback interface is down. Prints `listening 443`.

Answers each request with the values of x-ms-RefreshTokenCredential, one a line.
"""

import fcntl
import socket
import struct
import sys

from logging_server import LoggingHandler, LoggingServer

SIOCSIFFLAGS, IFF_UP = 0x8914, 1


class Handler(LoggingHandler):
    def respond(self):
        self.read_content()
        values = self.headers.get_all("x-ms-RefreshTokenCredential") or []
        self.server.log({"method": self.command, "path": self.path, "status": 200, "fields": values})
        self.reply(200, "".join(value + "\n" for value in values).encode())


log, certificate, key = sys.argv[1:4]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
server = LoggingServer(Handler, log, certificate, key, port=443)
print("listening 443", flush=True)
server.serve_forever()
