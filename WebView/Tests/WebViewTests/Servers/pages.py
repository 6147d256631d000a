# SPDX-License-Identifier: Apache-2.0
"""Pages that lead to a URL in every way that a page can, on two origins with http and one with https, and a proxy.

Usage: pages.py FOLDER. Prints its ports as the first line, then every request as a line of JSON. Writes `bundle.pem`,
the certificates that the https origin needs, to FOLDER. Ends with standard input.
"""

import base64
import http.server
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse

folder = sys.argv[1]
lock = threading.Lock()


def log(**line):
    with lock:
        print(json.dumps(line), flush=True)


def ways(how, to):
    """The page that goes to the URL `to`."""
    target = json.dumps(to)
    return {
        "click": f"<a id=a href={target}>x</a><script>onload = () => a.click()</script>",
        "blank": f"<a id=a target=_blank href={target}>x</a><script>onload = () => a.click()</script>",
        "script": f"<script>onload = () => {{ location = {target} }}</script>",
        "meta": f"<meta http-equiv=refresh content='0;url={to}'>",
        "post": f"<form id=f method=post action='/302?{urllib.parse.urlencode({'to': to})}'><input name=user value=x>"
        "</form><script>onload = () => f.submit()</script>",
        "form": f"<form id=f method=post action={target}><input name=user value=x></form>"
        "<script>onload = () => f.submit()</script>",
        "open": f"<script>onload = () => window.open({target})</script>",
    }[how]


POST = "window.webkit.messageHandlers.callback.postMessage"
PAGES = {
    "/": "<h1>Sign in</h1>",
    "/red": "<body style='background: #ff0000'>",
    "/close": "<script>onload = () => window.close()</script>",
    "/handler": "<script>fetch('/answer?' + typeof window.webkit)</script>",
    "/handler-in-frame": "<iframe src=/handler></iframe>",
    "/location": "<script>navigator.geolocation.getCurrentPosition(() => fetch('/answer?yes'),"
    " error => fetch('/answer?' + error.code))</script>",
    "/parts": "<img src='https://images.test/a.png'><iframe src='https://other.test/frame'></iframe>"
    "<script>fetch('/fetched')</script>",
}


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fields = {name: self.headers.get(name) for name in ("Cookie", "X-Token", "User-Agent", "Proxy-Authorization")}
        log(origin=self.server.name, method=self.command, path=self.path, **fields)
        path, _, query = self.path.partition("?")
        query = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
        if path == "/302":
            self.reply(302, [("Location", query["to"])], "")
        elif path == "/go":
            self.reply(200, [], ways(query["how"], query["to"]))
        elif path == "/frame":
            # The frame has tried when it is loaded.
            then = json.dumps(query["then"])
            source = query["src"].replace("'", "%27")
            self.reply(200, [], f"<iframe src='{source}'></iframe>"
                       f"<script>onload = () => setTimeout(() => {{ location = {then} }}, 500)</script>")
        elif path == "/cookies":
            lines = ["SID=secret-1; HttpOnly; Path=/", "KEY=secret-2; Max-Age=1000; Path=/", "OTHER=secret-3; Path=/"]
            self.reply(200, [("Set-Cookie", line) for line in lines], "")
        elif path == "/message":
            body = json.dumps(query["body"])
            self.reply(200, [], f"<script>{POST}({body}).then(answer => fetch('/answer?' + answer))</script>")
        elif path == "/attachment":
            self.reply(200, [("Content-Disposition", "attachment; filename=a.html")], "x")
        elif path == "/profile":
            self.reply(200, [("Content-Type", "application/x-apple-aspen-config")], "x")
        elif path == "/basic":
            self.reply(401, [("WWW-Authenticate", 'Basic realm="x"')], "<script>fetch('/answer?shown')</script>")
        elif path == "/status":
            # As Countersign's responses in place of a server's.
            fields = [("Proxy-Status", query["said"])] if "said" in query else []
            self.reply(int(query["status"]), fields + [("Content-Type", query.get("type", "text/plain"))],
                       query.get("body", ""))
        elif path == "/407":
            self.reply(407, [("Proxy-Authenticate", 'Basic realm="countersign"')], "")
        elif path in PAGES:
            self.reply(200, [], PAGES[path])
        else:
            self.reply(404, [], "not found")

    do_POST = do_GET

    def reply(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if not any(name == "Content-Type" for name, _ in fields):
            self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass


class Proxy(http.server.BaseHTTPRequestHandler):
    """Connects every tunnel to the https origin. Asks for the token, as Countersign does."""

    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        wanted = "Basic " + base64.b64encode(b"webview:secret-token").decode()
        authorized = self.headers.get("Proxy-Authorization") == wanted
        log(origin="proxy", method="CONNECT", path=self.path, authorized=authorized)
        self.close_connection = True
        if not authorized:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="countersign"')
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            return self.end_headers()
        if self.path.startswith("down."):
            self.send_response(502)
            self.send_header("Proxy-Status", 'countersign; error=dns_error; details="down.test: \\"no\\" such host"')
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        upstream = socket.create_connection(("127.0.0.1", ports["secure"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        ends = {self.connection: upstream, upstream: self.connection}
        try:
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return upstream.close()
                    ends[end].sendall(data)
        except OSError:
            upstream.close()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def serve(name, handler, context=None):
    server = Server(("127.0.0.1", 0), handler)
    server.name = name
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, stderr=subprocess.DEVNULL)


def make_certificates():
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test CA", "-days", "2")
    openssl("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", "/CN=leaf")
    with open(os.path.join(folder, "extensions"), "w") as file:
        file.write("subjectAltName=DNS:login.test,DNS:other.test,DNS:images.test,DNS:localhost")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-extfile", "extensions", "-out", "leaf.pem", "-days", "2")
    with open(os.path.join(folder, "bundle.pem"), "wb") as bundle:
        for path in ("/etc/ssl/certs/ca-certificates.crt", os.path.join(folder, "ca.pem")):
            with open(path, "rb") as file:
                bundle.write(file.read())


make_certificates()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(folder, "leaf.pem"), os.path.join(folder, "leaf.key"))
ports = {"first": serve("first", Pages), "second": serve("second", Pages)}
ports["secure"] = serve("secure", Pages, context)
ports["proxy"] = serve("proxy", Proxy)
# A port that refuses connections, for as long as this socket is open.
silent = socket.socket()
silent.bind(("127.0.0.1", 0))
ports["silent"] = silent.getsockname()[1]
print(json.dumps(ports), flush=True)
sys.stdin.read()
