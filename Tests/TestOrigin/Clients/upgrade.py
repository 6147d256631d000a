# SPDX-License-Identifier: Apache-2.0
"""upgrade.py PROXY_PORT ORIGIN_PORT ANCHOR: asks https://www.test.localhost:ORIGIN_PORT to switch protocols, through
the proxy. Prints the head of the response, then the line that comes back for the line "hello".
"""

import socket
import ssl
import sys

port, origin_port, anchor = sys.argv[1:]
place = f"www.test.localhost:{origin_port}"


def read_head(stream):
    lines = [stream.readline().decode()]
    while lines[-1].strip():
        lines.append(stream.readline().decode())
    return "".join(lines[:-1])


plain = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
plain.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
head = b""
while not head.endswith(b"\r\n\r\n"):
    head += plain.recv(1)
if b" 200 " not in head.split(b"\r\n")[0]:
    sys.exit(head.decode())
connection = ssl.create_default_context(cafile=anchor).wrap_socket(plain, server_hostname="www.test.localhost")
connection.sendall(
    f"GET /switch HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n".encode()
)
stream = connection.makefile("rb")
print(read_head(stream), end="")
connection.sendall(b"hello\n")
print(stream.readline().decode(), end="")
