# SPDX-License-Identifier: Apache-2.0
"""Uploads content through the proxy, as upload_origin.py expects it.

Usage: upload.py ANCHORS SEED < PLAN    PLAN is a JSON array of groups: `proxy` (the port), `base` (a URL without a
path), `lengths`, and `repeats`. Each length is uploaded in chunks and with its length, that often. Prints a JSON object
with `uploads` (each id with its base) and `failures` (texts).
"""

import json
import random
import socket
import ssl
import sys
import threading
import urllib.parse

CONTENT = memoryview(random.Random(17).randbytes(24 << 20))
THREADS = 8


def lines_of_head(stream):
    head = b""
    while b"\r\n\r\n" not in head:
        data = stream.recv(65536)
        if not data:
            raise OSError("no response")
        head += data
    return head.split(b"\r\n\r\n", 1)


def connect(proxy, parts, tls):
    stream = socket.create_connection(("127.0.0.1", proxy), timeout=600)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "http":
        return stream
    stream.sendall(f"CONNECT {parts.netloc} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    head, _ = lines_of_head(stream)
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError(repr(head[:200]))
    return tls.wrap_socket(stream, server_hostname=parts.hostname)


def send(stream, job, parts):
    path = f"/{job['offset']}/{job['length']}/{job['id']}"
    target = path if parts.scheme == "https" else f"http://{parts.netloc}{path}"
    framing = "Transfer-Encoding: chunked" if job["chunked"] else f"Content-Length: {job['length']}"
    expects = "Expect: 100-continue\r\n" if job["expects"] else ""
    stream.sendall(f"POST {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{framing}\r\n{expects}\r\n".encode())
    content = CONTENT[job["offset"]:job["offset"] + job["length"]]
    for start in range(0, len(content), job["step"]):
        part = content[start:start + job["step"]]
        if job["chunked"]:
            stream.sendall(b"%x\r\n" % len(part) + bytes(part) + b"\r\n")
        else:
            stream.sendall(part)
    if job["chunked"]:
        stream.sendall(b"0\r\n\r\n")


def upload(job, tls):
    parts = urllib.parse.urlsplit(job["base"])
    with connect(job["proxy"], parts, tls) as stream:
        try:
            send(stream, job, parts)
        except (BrokenPipeError, ConnectionResetError):
            pass
        head, rest = lines_of_head(stream)
        while head.startswith(b"HTTP/1.1 100"):
            head, rest = rest.split(b"\r\n\r\n", 1) if b"\r\n\r\n" in rest else lines_of_head(stream)
        if not head.startswith(b"HTTP/1.1 200 "):
            return f"{job}: {head[:400]!r}"
        while len(rest) < 2:
            rest += stream.recv(4096) or b"??"
        return None if rest == b"ok" else f"{job}: {rest[:60]!r}"


def jobs(plan, chance):
    for group in plan:
        for length in group["lengths"]:
            for number in range(group["repeats"]):
                for chunked in (False, True):
                    yield {
                        "proxy": group["proxy"], "base": group["base"], "length": length, "chunked": chunked,
                        "offset": chance.randrange(len(CONTENT) - length), "expects": number == 3,
                        "step": chance.choice([30_000, 65_536, 250_000, 1 << 20]),
                    }


def main():
    plan, chance = json.load(sys.stdin), random.Random(sys.argv[2])
    waiting = list(jobs(plan, chance))
    chance.shuffle(waiting)
    uploads, failures, lock = {}, [], threading.Lock()
    tls = ssl.create_default_context(cafile=sys.argv[1])
    waiting = [job | {"id": f"u{number}"} for number, job in enumerate(waiting)]
    for job in waiting:
        uploads[job["id"]] = job["base"]

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                job = waiting.pop()
            try:
                failure = upload(job, tls)
            except (OSError, ValueError) as error:
                failure = f"{job}: {error!r}"
            if failure:
                with lock:
                    failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"uploads": uploads, "failures": failures}))


main()
