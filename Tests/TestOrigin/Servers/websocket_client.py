# SPDX-License-Identifier: Apache-2.0
"""websocket_client.py URL PROXY CA: sends a text, 1 MiB of bytes and a ping through the proxy; prints `ok N`."""

import os
import ssl
import sys

from websockets.sync.client import connect

url, proxy, ca = sys.argv[1:4]
options = {"proxy": None if proxy == "-" else proxy, "max_size": None, "open_timeout": 20, "compression": None}
if url.startswith("wss:"):
    options["ssl"] = ssl.create_default_context(cafile=ca)
with connect(url, **options) as socket:
    messages = ["hello", os.urandom(1 << 20), "", "ünï"]
    for message in messages:
        socket.send(message)
        if socket.recv(timeout=20) != message:
            sys.exit("not what was sent")
    if not socket.ping().wait(20):
        sys.exit("no pong")
print("ok", len(messages))
