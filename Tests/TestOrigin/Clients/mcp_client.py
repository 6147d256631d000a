# SPDX-License-Identifier: Apache-2.0
"""mcp_client.py URL: PyPI's `mcp` client, without a token, by the proxy and the anchor that the environment names.

Prints the server's tools and the sum of 20 and 22.
"""

import asyncio
import sys

from mcp.client.client import Client


async def main(url):
    async with Client(url) as client:
        tools = await client.list_tools()
        print("tools", *[tool.name for tool in tools.tools])
        result = await client.call_tool("add", {"a": 20, "b": 22})
        print("sum", result.content[0].text)


asyncio.run(main(sys.argv[1]))
