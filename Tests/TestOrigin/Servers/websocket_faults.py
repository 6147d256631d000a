# SPDX-License-Identifier: Apache-2.0
"""websocket_faults.py CERT KEY: a TLS server that answers the GET of a WebSocket; prints `listening PORT`.

/echo          opens it, sends back what it gets, and `bye` after the end of that
/early         opens it, sends `early` in the same packet, and closes
/wrong-accept  opens it with the Sec-WebSocket-Accept of another key
/no-accept     opens it without one
/other         switches to another protocol
/ok            200 with content, as for any GET
/forbidden     403 with content
/cut           opens it, and then resets the connection
/request       opens it, and sends the request's head
"""

import base64
import hashlib
import socket
import ssl
import struct
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
context.set_alpn_protocols(["http/1.1"])


def accept(head):
    lines = [line.split(": ", 1) for line in head.split("\r\n")[1:]]
    key = next((value for name, value in lines if name.lower() == "sec-websocket-key"), "")
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def switching(accepted, protocol="websocket"):
    field = f"Sec-WebSocket-Accept: {accepted}\r\n" if accepted else ""
    return f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n{field}\r\n".encode()


def serve(raw):
    try:
        connection = context.wrap_socket(raw, server_side=True)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65536)
            if not piece:
                return
            head += piece
        head, rest = head.split(b"\r\n\r\n", 1)
        head = head.decode("latin-1")
        way = head.split(" ")[1]
        opened = switching(accept(head))
        if way == "/early":
            connection.sendall(opened + b"early")
        elif way == "/request":
            connection.sendall(opened + head.encode("latin-1"))
        elif way == "/wrong-accept":
            connection.sendall(switching("c29tZXRoaW5nIGVsc2UgaGVyZQ=="))
        elif way == "/no-accept":
            connection.sendall(switching(None))
        elif way == "/other":
            connection.sendall(switching(accept(head), "other"))
        elif way in ("/ok", "/forbidden"):
            status = "200 OK" if way == "/ok" else "403 Forbidden"
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\npage".encode())
        elif way == "/cut":
            connection.sendall(opened)
            connection.recv(65536)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return connection.close()
        else:
            connection.sendall(opened + rest)
            while piece := connection.recv(65536):
                connection.sendall(piece)
            connection.sendall(b"bye")
        connection.unwrap()
    except (OSError, ssl.SSLError):
        pass
    finally:
        raw.close()


listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print("listening", listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
