# SPDX-License-Identifier: Apache-2.0
"""Opens a page as a person would who signs in: follows redirects, keeps cookies, fills in the first form of each page
and sends it, until a page has no form.

Usage: form_browser.py [--ca FILE] URL [NAME=VALUE ...]    The values replace those that the forms have.
Prints the address and status of each page, without queries. FILE has the trust anchor for https.
"""

import html.parser
import socket
import sys
import urllib.parse

import requests


class FirstForm(html.parser.HTMLParser):
    """The first form of a page: where it goes, and its inputs."""

    def __init__(self, page):
        super().__init__()
        self.action, self.method, self.inputs, self.state = None, "get", {}, "before"
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "form" and self.state == "before":
            self.state, self.action, self.method = "in", values.get("action", ""), values.get("method", "get").lower()
        if tag == "input" and self.state == "in" and values.get("name") and values.get("type") != "submit":
            self.inputs[values["name"]] = values.get("value") or ""

    def handle_endtag(self, tag):
        if tag == "form" and self.state == "in":
            self.state = "after"


def resolve(host, *rest, resolver=socket.getaddrinfo, **named):
    """As browsers do: names below localhost are this machine (RFC 6761 §6.3)."""
    return resolver("127.0.0.1" if host.endswith(".localhost") else host, *rest, **named)


def show(response):
    for one in response.history + [response]:
        print(one.status_code, one.request.method, one.url.split("?")[0], flush=True)


def main():
    words = sys.argv[1:]
    socket.getaddrinfo = resolve
    session = requests.Session()
    session.trust_env = False
    if words[0] == "--ca":
        session.verify = words[1]
        words = words[2:]
    typed = dict(word.split("=", 1) for word in words[1:])
    response = session.get(words[0], timeout=60)
    show(response)
    for _ in range(5):
        form = FirstForm(response.text)
        if form.action is None:
            break
        inputs = {name: typed.get(name, value) for name, value in form.inputs.items()}
        address = urllib.parse.urljoin(response.url, form.action)
        response = session.request(
            form.method, address, timeout=60, **{"data" if form.method == "post" else "params": inputs})
        show(response)


main()
