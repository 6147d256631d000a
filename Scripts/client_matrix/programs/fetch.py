# SPDX-License-Identifier: Apache-2.0
"""fetch.py LIBRARY URL [FILE]: prints the page, or the response to a POST of the file, with one of Python's libraries
and the settings that it reads from the environment."""

import asyncio
import os
import sys

LIBRARY, URL = sys.argv[1:3]
BODY = open(sys.argv[3], "rb").read() if len(sys.argv) > 3 else None
METHOD = "POST" if BODY else "GET"


def urllib():
    import urllib.request

    with urllib.request.urlopen(urllib.request.Request(URL, BODY)) as page:
        return page.read()


def requests():
    import requests

    response = requests.request(METHOD, URL, data=BODY)
    response.raise_for_status()
    return response.content


def httpx():
    import httpx

    response = httpx.request(METHOD, URL, content=BODY, follow_redirects=True, timeout=15)
    response.raise_for_status()
    return response.content


def aiohttp():
    import aiohttp

    async def page():
        # Without trust_env, aiohttp reads no variable for a proxy.
        async with aiohttp.ClientSession(trust_env=True) as session:
            async with session.request(METHOD, URL, data=BODY) as response:
                response.raise_for_status()
                return await response.read()

    return asyncio.run(page())


def urllib3():
    import urllib3

    # urllib3 reads no variable for a proxy, so that a program has to.
    proxy = os.environ["https_proxy"]
    login = urllib3.util.parse_url(proxy).auth
    response = urllib3.ProxyManager(
        proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=login) if login else None
    ).request(METHOD, URL, body=BODY, retries=3)
    if response.status != 200:
        sys.exit(f"status {response.status}")
    return response.data


def pycurl():
    import io

    import pycurl

    sink, curl = io.BytesIO(), pycurl.Curl()
    curl.setopt(pycurl.URL, URL)
    curl.setopt(pycurl.WRITEDATA, sink)
    curl.setopt(pycurl.FAILONERROR, True)
    curl.setopt(pycurl.FOLLOWLOCATION, True)
    # libcurl itself reads no variable for anchors.
    curl.setopt(pycurl.CAINFO, os.environ["CURL_CA_BUNDLE"])
    if BODY:
        curl.setopt(pycurl.POSTFIELDS, BODY)
    curl.perform()
    return sink.getvalue()


def curl_cffi():
    from curl_cffi import requests

    response = requests.request(METHOD, URL, data=BODY)
    response.raise_for_status()
    return response.content


def httplib2():
    import httplib2

    response, content = httplib2.Http(timeout=15).request(URL, METHOD, BODY)
    if response.status != 200:
        sys.exit(f"status {response.status}")
    return content


sys.stdout.buffer.write(globals()[LIBRARY]())
