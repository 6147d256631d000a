# SPDX-License-Identifier: Apache-2.0
"""websocket_client.py URL PROXY CA: sends texts, 1 MiB of bytes and a ping through the proxy, and prints `ok N`.

Uses one thread, because Python's TLS sockets do not support concurrent reads and writes.
"""

import asyncio
import os
import ssl
import sys

from websockets.asyncio.client import connect


async def main(url, proxy, ca):
    options = {"proxy": None if proxy == "-" else proxy, "max_size": None, "open_timeout": 20, "compression": None}
    if url.startswith("wss:"):
        options["ssl"] = ssl.create_default_context(cafile=ca)
    messages = ["hello", os.urandom(1 << 20), "", "ünï"]
    async with connect(url, **options) as socket:
        for message in messages:
            await asyncio.wait_for(socket.send(message), 20)
            if await asyncio.wait_for(socket.recv(), 20) != message:
                sys.exit("the echo differs")
        await asyncio.wait_for(await socket.ping(), 20)
    print("ok", len(messages))


asyncio.run(main(*sys.argv[1:4]))
