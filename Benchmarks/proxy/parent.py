# SPDX-License-Identifier: Apache-2.0
"""The parent proxy of the scenarios that need one. It shares the origin's core, so it limits their rate, but its own
CPU time is not counted."""

from origin import ntlm_challenge
from peer import Peer
from scenarios import PARENT_PORT


class Parent(Peer):
    """Only the parent can look up parent.bench.test, so a response from there shows that requests went through it. It
    is ready when it demands a password."""

    probed, expected = "parent.bench.test", b"407"

    def __init__(self, bench):
        super().__init__("parent", PARENT_PORT, bench, {"BENCH_NTLM_CHALLENGE": ntlm_challenge()})
