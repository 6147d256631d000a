# SPDX-License-Identifier: Apache-2.0
"""The origin behind every proxy, one nginx worker on loopback, and the benchmark's certificates.

All its sites have the same cost, so that none is limited by the origin; auth_basic would read a file for each request.
The NTLM site always sends the same challenge, and checks only the type of the client's message, not its proof; the
proxy's work is the same. NTLM authenticates the connection, so requests after the AUTHENTICATE_MESSAGE need no
authorization; the site rejects a connection whose first request has none. The Digest site does not verify the digest.

One port acts as a parent proxy for plain requests, which demands Basic and responds itself.
"""

import base64
import os
import re
import signal
import struct
import subprocess
import time
import urllib.request

from scenarios import BEARER_TOKEN, HTTP_PORT, QUICK_PARENT_PORT, STORE_PORT, TLS_PORT

NAMES = "DNS:*.bench.test,DNS:mitm.bench.test,DNS:*.mitm.bench.test"
EXTENSIONS = {
    "root": "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n",
    "origin": f"subjectAltName={NAMES}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n",
    "leaf": "subjectAltName=DNS:mitm.bench.test\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n",
    "client": "extendedKeyUsage=clientAuth\nbasicConstraints=CA:FALSE\n",
}


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make_certificate(name, subject, kind, issuer=None):
    """Creates NAME.key and NAME.pem with an ECDSA P-256 key in the current folder."""
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key")
    openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
    with open("extensions", "w") as file:
        file.write(EXTENSIONS[kind])
    signer = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial"] if issuer else [
        "-signkey", f"{name}.key"]
    openssl("x509", "-req", "-in", f"{name}.csr", "-days", "365", "-extfile", "extensions", "-out", f"{name}.pem",
            *signer)


def make_pki(folder):
    if os.path.exists(f"{folder}/complete") and time.time() - os.path.getmtime(f"{folder}/complete") < 300 * 86_400:
        return
    os.makedirs(folder, exist_ok=True)
    before = os.getcwd()
    os.chdir(folder)
    make_certificate("origin-root", "/CN=Bench Origin Root", "root")
    make_certificate("origin", "/CN=origin.bench.test", "origin", "origin-root")
    make_certificate("client", "/CN=bench", "client", "origin-root")
    openssl("pkcs12", "-export", "-in", "client.pem", "-inkey", "client.key", "-passout", "pass:bench", "-out",
            "client.p12")
    make_certificate("root", "/CN=Bench Interception Root/O=bench", "root")
    make_certificate("leaf", "/CN=mitm.bench.test", "leaf", "root")
    with open("leaf-and-key.pem", "w") as file:
        file.write(open("leaf.pem").read() + open("leaf.key").read())
    for name in os.listdir("."):
        os.chmod(name, 0o644)  # not secret, and servers that drop their privileges read them
    open("complete", "w").close()
    os.chdir(before)


def ntlm_challenge():
    """A CHALLENGE_MESSAGE (MS-NLMP §2.2.1.2) in the form that a domain member sends."""
    def pair(kind, value):
        return struct.pack("<HH", kind, len(value)) + value

    def text(kind, value):
        return pair(kind, value.encode("utf-16-le"))

    filetime = struct.pack("<Q", (int(time.time()) + 11_644_473_600) * 10_000_000)
    target = "BENCH".encode("utf-16-le")
    about = (text(2, "BENCH") + text(1, "ORIGIN") + text(4, "bench.test") + text(3, "ntlm.bench.test")
             + pair(7, filetime) + pair(0, b""))
    flags, challenge, header, version = 0xE2898215, bytes.fromhex("0123456789abcdef"), 56, "0a00f4650000000f"
    message = b"NTLMSSP\0" + struct.pack("<IHHII", 2, len(target), len(target), header, flags) + challenge + bytes(8)
    message += struct.pack("<HHI", len(about), len(about), header + len(target)) + bytes.fromhex(version)
    return base64.b64encode(message + target + about).decode()


CONFIGURATION = """
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid {folder}/pid;
error_log {folder}/error.log error;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
    client_max_body_size 0;
    client_body_temp_path {bodies};
    client_body_buffer_size 128k;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    open_file_cache max=100;
    ssl_certificate {pki}/origin.pem;
    ssl_certificate_key {pki}/origin.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:sessions:10m;
    server {{
        listen 127.0.0.1:{http} backlog=4096;
        listen 127.0.0.1:{tls} ssl backlog=4096 default_server;
        root {folder}/www;
        location = /1k {{ return 200 "{body}"; }}
        location = /sink {{
            proxy_pass http://127.0.0.1:{store}/;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }}
        location = /status {{ stub_status; }}
    }}
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name basic.bench.test;
        location = /1k {{
            if ($http_authorization != "Basic {credentials}") {{
                add_header WWW-Authenticate 'Basic realm="bench"' always;
                return 401 "Basic, please";
            }}
            return 200 "{body}";
        }}
    }}
    server {{
        listen 127.0.0.1:{parent} backlog=4096;
        location / {{
            if ($http_proxy_authorization != "Basic {credentials}") {{
                add_header Proxy-Authenticate 'Basic realm="bench"' always;
                return 407 "Basic, please";
            }}
            return 200 "{body}";
        }}
    }}
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name bearer.bench.test;
        location = /1k {{
            if ($http_authorization != "Bearer {token}") {{
                add_header WWW-Authenticate 'Bearer realm="bench"' always;
                return 401 "A token, please";
            }}
            return 200 "{body}";
        }}
    }}
    map $http_authorization $is_digest {{ default ""; '~^Digest username="user", realm="bench", .*, nc=' 1; }}
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name digest.bench.test;
        location = /1k {{
            if ($is_digest != 1) {{
                add_header WWW-Authenticate
                    'Digest realm="bench", nonce="{nonce}", qop="auth", algorithm=SHA-256' always;
                return 401 "Digest, please";
            }}
            return 200 "{body}";
        }}
    }}
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name cert.bench.test;
        ssl_client_certificate {pki}/origin-root.pem;
        ssl_verify_client on;
        location = /1k {{ return 200 "{body}"; }}
    }}
    map "$connection_requests $http_authorization" $ntlm {{
        default "";
        "1 " "NTLM";
        "~^[0-9]+ NTLM TlRMTVNTUAAB" "NTLM {challenge}";
    }}
    map $http_authorization $is_third {{ default ""; "~^NTLM TlRMTVNTUAAD" 1; }}
    log_format third $connection;
    server {{
        listen 127.0.0.1:{tls} ssl;
        server_name ntlm.bench.test;
        access_log {folder}/ntlm.log third if=$is_third;
        location = /1k {{
            if ($ntlm) {{
                add_header WWW-Authenticate $ntlm always;
                return 401 "NTLM, please";
            }}
            return 200 "{body}";
        }}
    }}
    server {{ listen 127.0.0.1:{store}; location / {{ return 200 "stored"; }} }}
}}
"""


class Origin:
    """Runs inside a `with` statement."""

    def __init__(self, folder, pki, files):
        self.folder, self.process = folder, None
        os.makedirs(f"{folder}/www", exist_ok=True)
        body = ("x" * 1000 + f"{7:024d}")
        for name, size in (("1m", 1 << 20), ("100m", 100 << 20)):
            if not os.path.exists(f"{folder}/www/{name}"):
                with open(f"{folder}/www/{name}", "wb") as file:
                    file.write(os.urandom(1 << 20) * (size >> 20))
        bodies = "/dev/shm/countersign-bench" if os.access("/dev/shm", os.W_OK) else f"{folder}/bodies"
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(CONFIGURATION.format(
                folder=folder, pki=pki, http=HTTP_PORT, tls=TLS_PORT, store=STORE_PORT, parent=QUICK_PARENT_PORT,
                body=body, bodies=bodies, files=files, connections=min(files - 100, 18_000), challenge=ntlm_challenge(),
                nonce=os.urandom(16).hex(), credentials=base64.b64encode(b"user:pass").decode(),
                token=BEARER_TOKEN))

    def __enter__(self):
        if self.accepted() is not None:
            raise SystemExit("Scripts/bench: another bench is running")
        self.process = subprocess.Popen(["nginx", "-c", f"{self.folder}/nginx.conf", "-e", "stderr"],
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.process.pid
        end = time.monotonic() + 10
        while self.accepted() is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit("Scripts/bench: the origin did not start")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def accepted(self):
        """The number of connections that the origin has accepted; None if it does not respond."""
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{HTTP_PORT}/status", timeout=5) as answer:
                return int(re.search(rb"^ *(\d+)", answer.read().split(b"\n")[2])[1])
        except OSError:
            return None

    def ntlm_answers(self):
        """The number of AUTHENTICATE_MESSAGEs received."""
        try:
            with open(f"{self.folder}/ntlm.log") as file:
                return sum(1 for _ in file)
        except OSError:
            return 0
