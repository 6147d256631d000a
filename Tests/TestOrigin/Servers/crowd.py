# SPDX-License-Identifier: Apache-2.0
"""A browser that signs in beside another process that crowds the redirect listener: connections that send nothing, that
never end their request, and that send wrong answers.

Usage: crowd.py URL    Prints the status of the redirect.
"""

import http.client
import socket
import sys
import urllib.parse


def get(url):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", parts.path + "?" + parts.query)
    return connection.getresponse()


def main():
    location = get(sys.argv[1]).headers["Location"]
    parts = urllib.parse.urlsplit(location)
    address, crowd = (parts.hostname, parts.port), []
    for number in range(60):
        other = socket.create_connection(address, timeout=60)
        if number % 3 == 1:
            other.sendall(b"GET /?code=evil HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Endless: ")
        if number % 3 == 2:
            host = f"{parts.hostname}:{parts.port}".encode()
            other.sendall(b"GET /?code=evil&state=evil HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        crowd.append(other)
    print(get(location).status)


main()
