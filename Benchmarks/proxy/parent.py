# SPDX-License-Identifier: Apache-2.0
"""The parent proxy of the scenarios that need one. It shares the origin's core, so it limits their rate, but its own
CPU time is not counted."""

import socket

from origin import ntlm_challenge
from peer import Peer
from scenarios import HTTP_PORT, PARENT_PORT


class Parent(Peer):
    """Only the parent can look up parent.bench.test, so a response from there shows that it was asked."""

    def __init__(self, bench):
        super().__init__("parent", PARENT_PORT, bench, {"BENCH_NTLM_CHALLENGE": ntlm_challenge()})

    def answers(self, timeout=5):
        """Whether it demands a password."""
        host = f"parent.bench.test:{HTTP_PORT}"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout) as stream:
                stream.sendall(f"GET http://{host}/1k HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                return stream.recv(4096)[9:12] == b"407"
        except OSError:
            return False
