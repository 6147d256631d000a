# SPDX-License-Identifier: Apache-2.0
"""A private registry with one package, `probe`, for pip and for npm.

Usage: package_server.py CERT KEY TOKEN    Prints `listening PORT`, then a line for each request: its status, the kind
of its Authorization and its path.

pip's index at /simple/ wants the token as the password of `__token__`, and npm's at / as Bearer.
"""

import base64
import hashlib
import http.server
import io
import json
import ssl
import sys
import tarfile
import zipfile

certificate, key, token = sys.argv[1:]
basic = "Basic " + base64.b64encode(f"__token__:{token}".encode()).decode()


def wheel():
    data, folder = io.BytesIO(), "probe-1.0.dist-info"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("probe.py", 'text = "installed"\n')
        archive.writestr(f"{folder}/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", f"probe.py,,\n{folder}/METADATA,,\n{folder}/WHEEL,,\n{folder}/RECORD,,\n")
    return data.getvalue()


def tarball():
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        files = {"package.json": '{"name": "probe", "version": "1.0.0"}', "index.js": 'module.exports = "installed";'}
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


made_wheel, made_tarball = wheel(), tarball()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        is_python = self.path.startswith(("/simple/", "/files/"))
        sent = self.headers.get("Authorization", "-")
        site = f"https://{self.headers['Host']}"
        version = {"name": "probe", "version": "1.0.0", "dist": {
            "tarball": f"{site}/probe/-/probe-1.0.0.tgz", "shasum": hashlib.sha1(made_tarball).hexdigest()}}
        page = '<a href="/files/probe-1.0-py3-none-any.whl">probe-1.0-py3-none-any.whl</a>'
        files = {
            "/simple/probe/": ("text/html", page.encode()),
            "/files/probe-1.0-py3-none-any.whl": ("application/zip", made_wheel),
            "/probe": ("application/json", json.dumps(
                {"name": "probe", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()),
            "/probe/-/probe-1.0.0.tgz": ("application/octet-stream", made_tarball)}
        is_permitted = sent == (basic if is_python else f"Bearer {token}")
        status = 401 if not is_permitted else 200 if self.path in files else 404
        kind, data = files[self.path] if status == 200 else ("text/plain", b"no\n")
        print(status, sent.split(" ")[0], self.path, flush=True)
        self.send_response(status)
        if status == 401 and is_python:
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", server.server_port, flush=True)
server.serve_forever()
