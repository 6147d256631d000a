# SPDX-License-Identifier: Apache-2.0
"""checks.py PROXY CA SITE [--path PATH] [ID...]: the checks of h2spec's list, in its order and with its numbers.

Each runs on a connection of its own, in a tunnel through PROXY to the intercepted SITE, both HOST:PORT. SITE answers a
GET or POST of PATH with 200 and at least five octets. Prints a line per check, and at last `N passed, N failed`.
"""

import argparse
import sys

from checks_fields import fields_checks
from checks_frames import frame_checks
from checks_states import state_checks
from peer import Failed, Peer
from messages import Requests


def run(options, check):
    name, title, needsStart, frames, verdict = check
    peer = Peer(options.proxy, options.anchor, options.site)
    try:
        if needsStart:
            peer.start()
        for part in frames:
            if callable(part):
                part(peer)
            else:
                peer.send(part)
        verdict(peer)
        return None
    except Failed as error:
        return str(error)
    finally:
        peer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("proxy", "anchor", "site"):
        parser.add_argument(name)
    parser.add_argument("--path", default="/size/100")
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    at = Requests(options.site, options.path)
    failed, count = 0, 0
    for check in [*state_checks(at), *frame_checks(at), *fields_checks(at)]:
        if options.ids and not any(check[0] == id or check[0].startswith(id + "/") for id in options.ids):
            continue
        count += 1
        fault = run(options, check)
        failed += fault is not None
        print("ok    " if fault is None else "FAILED", *check[:2], *([] if fault is None else [fault]), flush=True)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
