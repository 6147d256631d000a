# SPDX-License-Identifier: Apache-2.0
"""A person who signs in at glewlwyd, whose login page is a script around its programming interface.

Usage: glewlwyd_person.py URL    The name is `jdoe`, the password what PASSWORD in the environment says. Prints the
address and status of each page, without queries.
"""

import os
import sys
import urllib.parse

import requests


def main():
    session = requests.Session()
    session.trust_env = False
    first = session.get(sys.argv[1], allow_redirects=False, timeout=60)
    login = urllib.parse.urlsplit(urllib.parse.urljoin(sys.argv[1], first.headers["Location"]))
    asked = dict(urllib.parse.parse_qsl(login.query))
    interface = f"{login.scheme}://{login.netloc}/api"
    account = {"username": "jdoe", "password": os.environ["PASSWORD"]}
    session.post(interface + "/auth/", json=account, timeout=60).raise_for_status()
    grant = f"{interface}/auth/grant/{asked['client_id']}"
    session.put(grant, json={"scope": asked["scope"]}, timeout=60).raise_for_status()
    last = session.get(asked["callback_url"] + "&g_continue", timeout=60)
    for response in last.history + [last]:
        print(response.status_code, response.url.split("?")[0])


main()
