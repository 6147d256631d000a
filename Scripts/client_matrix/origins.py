# SPDX-License-Identifier: Apache-2.0
"""The sites of the matrix, all on loopback: the servers of Tests/TestOrigin, and one that redirects."""

import base64
import hashlib
import http.server
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = ROOT / "Tests/TestOrigin/Servers"
USER, PASSWORD, TOKEN = "jdoe", "matrix-password-1", "matrix.token-1=="
REALM = "CORP.TEST"


class Site:
    """A column: its name, the options of its line (None: not listed), and the URL of its tree of files."""

    def __init__(self, name, options, url):
        self.name, self.options, self.url = name, options, url

    @property
    def line(self):
        return "/".join(self.url.split("/")[:3]) + " " + self.options


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def answers(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def tool(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def run(*words, **options):
    """Runs a program that must succeed."""
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stdout}")
    return done.stdout


class Redirecting(http.server.BaseHTTPRequestHandler):
    """Wants Basic, and sends every path to the same one below `server.target`."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def respond(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        account = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != "Basic " + account:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="redirect"')
        else:
            self.send_response(302)
            self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_OPTIONS = do_PROPFIND = respond

    def log_message(self, *_):
        pass


class Origins:
    """Starts all sites in a folder. `www` is the tree of files that each of them serves."""

    def __init__(self, folder, www, python):
        self.folder, self.www, self.python = pathlib.Path(folder), pathlib.Path(www), python
        self.processes, self.environment, self.sites = [], {}, []
        self.pki = self.folder / "pki"
        self.pki.mkdir()
        run(python, SERVERS / "make_pki.py", self.pki)
        self.anchor = self.pki / "origin-ca.pem"

    def start(self):
        nginx, apache = self.start_nginx(), self.start_apache()
        kerberos = self.start_kerberos()
        ntlm = f"https://ntlm.test.localhost:{self.start_ntlm()}"
        redirect = self.start_redirect(ntlm)
        site = "https://{}.test.localhost:{}"
        self.sites = [
            Site("http", None, f"http://open.test.localhost:{nginx['HTTP']}"),
            Site("https", None, site.format("open", nginx["HTTPS"])),
            Site("http Basic", "answer=basic plaintext=yes", f"http://plain.test.localhost:{apache['HTTP']}/basic"),
            Site("Basic", "answer=basic", site.format("basic", apache["HTTPS"]) + "/basic"),
            Site("Digest", "answer=digest", site.format("digest", apache["HTTPS"]) + "/digest"),
            Site("NTLM", "answer=ntlm domain=ACME", ntlm),
            Site("Bearer", "answer=bearer credential=api", site.format("bearer", nginx["HTTPS"]) + "/token"),
            Site("certificate", "answer=certificate", site.format("cert", nginx["MTLS13"])),
            Site("redirect", "answer=basic", redirect),
        ]
        if kerberos:
            self.sites.insert(6, Site("Negotiate", "answer=negotiate", site.format("www", kerberos) + "/kerberos"))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()

    # Servers

    def launch(self, words, ports, **options):
        log = open(self.folder / "servers.log", "ab")
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, **options)
        self.processes.append(process)
        for _ in range(300):
            if all(answers(port) for port in ports):
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{words[0]} does not start: see {log.name}")

    def configure(self, template, folder, ports, **values):
        """Fills in one of the tests' templates."""
        text = (SERVERS / template).read_text(encoding="utf-8")
        numbers = {name: free_port() for name in ports}
        for name, value in {"FOLDER": folder, **values, **numbers}.items():
            text = text.replace(f"@{name}@", str(value))
        (folder / template).write_text(text, encoding="utf-8")
        return folder / template, numbers

    def make_folder(self, name, *trees):
        folder = self.folder / name
        folder.mkdir()
        for tree in trees:
            shutil.copytree(self.www, folder / "www" / tree, symlinks=True, dirs_exist_ok=True)
        return folder

    def certificate_values(self):
        return {
            "CERT": self.pki / "server.pem",
            "KEY": self.pki / "server.key",
            "CLIENT_CA_A": self.pki / "client-ca-a.pem",
            "CLIENT_CA_B": self.pki / "client-ca-b.pem",
        }

    def start_nginx(self):
        folder = self.make_folder("nginx", "", "token")
        names = ["HTTP", "HTTPS", "MTLS12", "MTLS13", "MTLSB", "OPTIONAL"]
        conf, ports = self.configure(
            "nginx.conf", folder, names, **self.certificate_values(), TOKEN=TOKEN, WEBSOCKET=free_port()
        )
        self.launch([tool("nginx"), "-c", conf, "-p", folder, "-e", folder / "error.log"], ports.values())
        return ports

    def apache_values(self):
        user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        return {**self.certificate_values(), "MODULES": "/usr/lib/apache2/modules", "USER": user}

    def start_apache(self):
        folder = self.make_folder("apache", "", "basic", "digest")
        run("htpasswd", "-ciB", "-C", "4", folder / "users", USER, input=PASSWORD)
        account = f"{USER}:Apache:"
        digest = hashlib.md5((account + PASSWORD).encode()).hexdigest()
        (folder / "digest").write_text(account + digest + "\n", encoding="utf-8")
        names = ["HTTP", "HTTPS", "TLS12", "TLS13"]
        conf, ports = self.configure("apache.conf", folder, names, **self.apache_values(), WEBSOCKET=free_port())
        self.launch([tool("apache2"), "-X", "-f", conf], ports.values())
        return ports

    def start_ntlm(self):
        users, port = self.folder / "ntlm-users", free_port()
        users.write_text(f"ACME:{USER}:{PASSWORD}\n", encoding="utf-8")
        words = [
            self.python,
            SERVERS / "origin.py",
            "--mode",
            "ntlm",
            "--port",
            port,
            "--users",
            users,
            "--cert",
            self.pki / "server.pem",
            "--key",
            self.pki / "server.key",
            "--root",
            self.www,
            "--log",
            self.folder / "ntlm.log",
        ]
        self.launch(words, [port])
        return port

    def start_redirect(self, target):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
        server.daemon_threads = True
        server.target = target
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.pki / "server.pem", self.pki / "server.key")
        # The handshake belongs to the thread of its connection.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"https://redirect.test.localhost:{server.server_address[1]}"

    def start_kerberos(self):
        """A realm of its own and Apache with mod_auth_gssapi; None if they are not installed."""
        module = pathlib.Path("/usr/lib/apache2/modules/mod_auth_gssapi.so")
        if not tool("krb5kdc") or not tool("kadmin.local") or not module.exists():
            return None
        folder = self.make_folder("realm")
        conf, ports = self.configure("kdc.conf", folder, ["PORT"])
        port = ports["PORT"]
        (folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n",
            encoding="utf-8",
        )
        tickets = {"KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5CCNAME": f"FILE:{folder}/tickets"}
        server = {**os.environ, **tickets, "KRB5_KDC_PROFILE": str(conf)}
        run(tool("kdb5_util"), "create", "-s", "-W", "-r", REALM, "-P", "master", env=server)
        keytab = folder / "http.keytab"
        for query in [
            f"addprinc -pw {PASSWORD} {USER}",
            "addprinc -randkey HTTP/www.test.localhost",
            f"ktadd -k {keytab} HTTP/www.test.localhost",
        ]:
            run(tool("kadmin.local"), "-r", REALM, "-q", query, env=server)
        keytab.chmod(0o644)
        self.launch([tool("krb5kdc"), "-n", "-r", REALM, "-P", folder / "pid"], [port], env=server)
        run("kinit", USER, input=PASSWORD + "\n", env={**os.environ, **tickets})
        self.environment = tickets
        return self.start_apache_kerberos(keytab, tickets)

    def start_apache_kerberos(self, keytab, tickets):
        folder = self.make_folder("apache-kerberos", "kerberos")
        replays = folder / "replays"
        replays.mkdir()
        replays.chmod(0o777)
        conf, ports = self.configure("apache-kerberos.conf", folder, ["HTTPS"], **self.apache_values(), KEYTAB=keytab)
        own = {"KRB5_KTNAME": str(keytab), "KRB5RCACHENAME": "dfl:", "KRB5RCACHEDIR": str(replays)}
        environment = {**os.environ, **tickets, **own}
        self.launch([tool("apache2"), "-X", "-f", conf], ports.values(), env=environment)
        return ports["HTTPS"]


def enrol(countersign, home, origins):
    """Makes a home that answers all sites. `countersign` runs the product with arguments and an input."""
    anchors = home / "Certs/anchors"
    anchors.mkdir(parents=True)
    shutil.copy(origins.anchor, anchors)
    countersign("credential", "set", "--user", USER, "--password-stdin", text=PASSWORD)
    countersign("credential", "set", "api", "--token-stdin", text=TOKEN)
    password = (origins.pki / "p12.password").read_text(encoding="utf-8")
    countersign(
        "certificate", "import", origins.pki / "laptop.p12", "--name", "laptop", "--password-stdin", text=password
    )
    listed = [site.line for site in origins.sites if site.options]
    (home / "AllowedSites").mkdir(exist_ok=True)
    (home / "AllowedSites/matrix.sites").write_text("\n".join(listed) + "\n", encoding="utf-8")
