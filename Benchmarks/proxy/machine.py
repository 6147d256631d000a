# SPDX-License-Identifier: Apache-2.0
"""Describes the machine and the versions that the figures depend on, without host or folder names."""

import os
import re
import subprocess


def first(pattern, text, otherwise="unknown"):
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else otherwise


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def output(*command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return run.stdout + run.stderr
    except OSError:
        return ""


def description(realtime):
    """Pairs of a property and its value."""
    cpu = read("/proc/cpuinfo")
    flags = first(r"^flags\s*:(.*)$", cpu, "").split()
    extensions = [name for name in ("aes", "vaes", "avx2", "avx512f", "sha_ni") if name in flags]
    memory = int(first(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), "0")) / (1 << 20)
    model = first(r"^model name\s*:(.*)$", cpu)
    megahertz = first(r"^cpu MHz\s*:\s*(\d+)", cpu, "")
    release = first(r"^PRETTY_NAME=.(.*).$", read("/etc/os-release"))
    nginx = first(r"nginx/(\S+)", output("nginx", "-v"))
    return [
        ("processor", f"{model}{f', {megahertz} MHz' if megahertz else ''}, {os.cpu_count()} cores"
                      f" ({', '.join(extensions) or 'no extensions that matter'})"),
        ("memory", f"{memory:.0f} GiB"),
        ("system", f"{release}, Linux {os.uname().release}"),
        ("OpenSSL", first(r"^OpenSSL (\S+)", output("openssl", "version"))),
        ("Swift", first(r"Swift version (\S+)", output("swift", "--version"))),
        ("origin", f"nginx {nginx}, one worker"),
        ("scheduling", "proxy alone on one core, load and origin on another, all SCHED_RR; the proxy's core never idles"
                       if realtime else "proxy on one core, load and origin on another, ordinary priority"),
    ]
