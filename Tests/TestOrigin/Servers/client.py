# SPDX-License-Identifier: Apache-2.0
"""Python requests as a command: client.py [--repeat N] METHOD URL PROXY CA|-|none BODYFILE|- OUT [name:value ...]

PROXY is a URL, `-` for none, or `env` to take the proxy and the trust anchors from the environment. Writes each
response's body to OUT and prints a line per response, a JSON object with status, headers (pairs) and error. With
--repeat the requests share one session.
"""

import json
import sys

import requests

arguments = sys.argv[1:]
repeat = 1
if arguments[0] == "--repeat":
    repeat = int(arguments[1])
    arguments = arguments[2:]
method, url, proxy, ca, body, out = arguments[:6]
fields = dict(pair.split(":", 1) for pair in arguments[6:])
session = requests.Session()
session.trust_env = proxy == "env"
if proxy not in ("-", "env"):
    session.proxies = {"http": proxy, "https": proxy}
if proxy != "env":
    session.verify = {"-": True, "none": False}.get(ca, ca)
if ca == "none":
    requests.packages.urllib3.disable_warnings()
failed = False
for _ in range(repeat):
    data = open(body, "rb").read() if body != "-" else None
    try:
        response = session.request(method, url, data=data, headers=fields, timeout=60, allow_redirects=False)
    except requests.exceptions.RequestException as error:
        print(json.dumps({"status": 0, "headers": [], "error": f"{type(error).__name__}: {error}"}), flush=True)
        failed = True
        continue
    with open(out, "wb") as file:
        file.write(response.content)
    pairs = [[name, value] for name, value in response.raw.headers.items()]
    print(json.dumps({"status": response.status_code, "headers": pairs, "error": None}), flush=True)
sys.exit(1 if failed else 0)
