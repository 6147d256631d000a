# SPDX-License-Identifier: Apache-2.0
"""Searches the memory of a process, as a debugger or a core dump would see it. Needs root.

Usage: memory.py PID    with lines "name hex" on standard input. Prints a line "name locked|ordinary mapping" per hit.
"""

import sys

# A hit may lie across two chunks.
CHUNK, OVERLAP = 16 << 20, 4096


def mappings(pid):
    """(start, end, name, is locked) of each readable mapping."""
    found = []
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                start, end = (int(part, 16) for part in words[0].split("-"))
                found.append([start, end, words[5] if len(words) > 5 else "anonymous", False, words[1]])
            elif words[0] == "VmFlags:":
                found[-1][3] = "lo" in words
    return [entry[:4] for entry in found if entry[4].startswith("r") and entry[2] not in ("[vvar]", "[vsyscall]")]


def main():
    marks = [(name, bytes.fromhex(digits)) for name, digits in (line.split() for line in sys.stdin)]
    with open(f"/proc/{sys.argv[1]}/mem", "rb", buffering=0) as memory:
        for start, end, mapping, is_locked in mappings(sys.argv[1]):
            seen = set()
            for position in range(start, end, CHUNK):
                try:
                    memory.seek(position)
                    chunk = memory.read(min(CHUNK + OVERLAP, end - position))
                except OSError:
                    # The process has released the mapping.
                    continue
                for name, mark in marks:
                    at = chunk.find(mark)
                    while at >= 0:
                        if (name, position + at) not in seen:
                            seen.add((name, position + at))
                            print(name, "locked" if is_locked else "ordinary", mapping, flush=True)
                        at = chunk.find(mark, at + 1)


main()
