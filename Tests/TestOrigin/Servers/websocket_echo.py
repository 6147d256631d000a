# SPDX-License-Identifier: Apache-2.0
"""A WebSocket echo server on loopback, with `websockets` from PyPI. Prints `listening PORT`."""

from websockets.sync.server import serve


def echo(connection):
    for message in connection:
        connection.send(message)


with serve(echo, "127.0.0.1", 0, max_size=None) as server:
    print("listening", server.socket.getsockname()[1], flush=True)
    server.serve_forever()
