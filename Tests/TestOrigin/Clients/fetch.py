# SPDX-License-Identifier: Apache-2.0
"""fetch.py URL: prints the page with urllib, with the proxy and the trust anchors from the environment."""

import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=60) as page:
    sys.stdout.write(page.read().decode())
