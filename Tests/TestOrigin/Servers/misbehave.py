# SPDX-License-Identifier: Apache-2.0
"""A server that misbehaves. misbehave.py MODE LOG [CERT KEY] prints `listening PORT` and logs one line per connection.

silent         accepts, reads, never responds
close          closes immediately
plain          responds to a ClientHello with plain HTTP
tls-silent     completes the TLS handshake and never responds to the request
tls-close      completes the TLS handshake, reads a request, closes without sending a byte
tls-cut-head   closes in the middle of the status line
tls-cut-body   announces 1000 bytes, sends 10, closes
tls-garbage    responds with bytes that are not HTTP
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
