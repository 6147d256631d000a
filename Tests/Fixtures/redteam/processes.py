# SPDX-License-Identifier: Apache-2.0
"""A program of the same user looks at the process of the proxy, and at what `exec` hands to its command."""

import os
import subprocess
import sys

# Runs as the proxy's user. Prints one line for each door that is open.
SPY = r"""
import ctypes, os, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
for name in "environ", "mem", "auxv", "maps", "smaps", "io", "stack", "syscall", "pagemap", "personality":
    try:
        data = open(f"/proc/{pid}/{name}", "rb").read(1)
        print(name)
    except OSError:
        pass
for name in "fd", "fdinfo", "map_files", "task/%d/fd" % pid, "ns":
    try:
        if os.listdir(f"/proc/{pid}/{name}") and name != "fdinfo":
            print(name)
    except OSError:
        pass
for name in "cwd", "exe", "root":
    try:
        os.readlink(f"/proc/{pid}/{name}")
        print(name)
    except OSError:
        pass
for request, name in (16, "PTRACE_ATTACH"), (0x4206, "PTRACE_SEIZE"):
    if libc.ptrace(request, pid, 0, 0) == 0:
        print(name)
buffer = ctypes.create_string_buffer(8)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
here, there = Vector(ctypes.addressof(buffer), 8), Vector(0x10000, 8)
libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
if ctypes.get_errno() not in (1, 3, 13):
    print("process_vm_readv", ctypes.get_errno())
try:
    pidfd = os.pidfd_open(pid)
    for fd in range(64):
        if libc.syscall(438, pidfd, fd, 0) >= 0:
            print("pidfd_getfd")
            break
except OSError:
    pass
"""
LIST = r"""
import os
print(*[fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists("/proc/self/fd/" + fd)])
print(dict(os.environ))
"""
ATTEMPTS = 21


def attack(world):
    """What was open, as sentences."""
    pid = str(world.server.pid)
    seen = subprocess.run([sys.executable, "-c", SPY, pid], capture_output=True, check=False, **world.process_options)
    for name in seen.stdout.decode().split("\n"):
        if name:
            yield f"a program of the same user can use {name} of serve"
    if seen.returncode != 0:
        yield f"the spy has failed: {seen.stderr.decode()}"
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        line = file.read()
    shown = world.run("exec", "--", sys.executable, "-c", LIST)
    if shown.split("\n")[0].strip():
        yield f"exec hands on descriptors {shown.splitlines()[0]}"
    for name, secret in world.secrets():
        if secret.encode() in line or secret in shown:
            yield f"the secret of {name} is in the arguments or the environment"
    for name in ("core", f"core.{pid}"):
        if os.path.exists(os.path.join(world.folder, name)):
            yield "serve has left a core file"
