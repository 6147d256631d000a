"""A server that challenges: /SCHEME and paths below it ask for that scheme. Basic is accepted with jdoe and secret, but
for paths that end in /never. The answer to a
Negotiate token is SPNEGO's reject (RFC 4178 section 4.2.2), as of a server that only knows Kerberos. /registry asks for
a token as a container registry does.

As a parent proxy, it asks for Basic and opens no tunnel; it refuses refused.example.

Usage: challenges.py [CERTIFICATE KEY]    Prints its port.
"""
import base64
import http.server
import ssl
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        if self.path.startswith("refused.example:"):
            return self.respond(403, [])
        self.respond(407, ['Basic realm="parent"'], "Proxy-Authenticate")

    def do_GET(self):
        if self.path.startswith("http://"):
            return self.do_CONNECT()
        if self.path.startswith("/registry"):
            return self.respond(401, ['Bearer realm="https://auth.example/token",service="registry"'])
        scheme = self.path.split("/")[1].capitalize()
        answer = self.headers.get("Authorization", "")
        basic = "Basic " + base64.b64encode(b"jdoe:secret").decode()
        if scheme == "Open" or scheme == "Basic" and answer == basic and not self.path.endswith("/never"):
            self.respond(200, [])
        elif scheme == "Negotiate" and answer.startswith("Negotiate "):
            reject = base64.b64encode(bytes.fromhex("a1073005a0030a0102")).decode()
            self.respond(401, ["Negotiate " + reject])
        else:
            self.respond(401, [scheme if scheme == "Negotiate" else scheme + ' realm="tools"'])

    def respond(self, status, challenges, name="WWW-Authenticate"):
        self.send_response(status)
        for challenge in challenges:
            self.send_header(name, challenge)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_port, flush=True)
server.serve_forever()
