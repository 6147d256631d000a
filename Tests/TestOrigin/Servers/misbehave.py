# SPDX-License-Identifier: Apache-2.0
"""A listener with one bad habit. misbehave.py MODE LOG [CERT KEY]; prints `listening PORT`, logs a line a connection.

silent         accepts, reads, never answers
close          closes at once
plain          answers a ClientHello with HTTP in the clear
tls-silent     finishes the TLS handshake and never answers the request
tls-close      finishes the TLS handshake, reads a request, closes without a byte
tls-cut-head   closes inside the status line
tls-cut-body   promises 1000 bytes, sends 10, closes
tls-garbage    answers with bytes that are not HTTP
"""

import socket
import ssl
import sys
import threading

REPLIES = {
    "close": b"",
    "plain": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "tls-close": b"",
    "tls-cut-head": b"HTTP/1.1 20",
    "tls-cut-body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789",
    "tls-garbage": b"\x00\x01\x02 this is not HTTP\r\n\r\n",
}

mode, log = sys.argv[1:3]
context = None
if mode.startswith("tls-"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])


def serve(connection):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        if mode != "close":
            data = connection.recv(65536)
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{len(data)}\n")
        if mode.endswith("silent"):
            while connection.recv(65536):
                pass
            return
        connection.sendall(REPLIES[mode])
        if context:
            connection.unwrap()
    except OSError:
        pass
    finally:
        connection.close()


with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
    print("listening", listener.getsockname()[1], flush=True)
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve, args=(accepted,), daemon=True).start()
