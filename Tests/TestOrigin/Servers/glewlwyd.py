# SPDX-License-Identifier: Apache-2.0
"""Debian's glewlwyd as a provider, with one public client and one person.

Usage: glewlwyd.py FOLDER REDIRECT    Prints `listening PORT`. The issuer is http://127.0.0.1:PORT/api/oidc, the client
`countersign` with the redirect URI REDIRECT, the person `jdoe` with the password that PASSWORD in the environment says.
Everything is in FOLDER. Ends glewlwyd when it ends itself.
"""

import ctypes
import gzip
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import requests

SCHEMA = "/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz"
CONFIGURATION = """
port={port}
bind_address="127.0.0.1"
external_url="http://127.0.0.1:{port}/"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="INFO"
static_files_path="{folder}/web/"
static_files_mime_types = ( {{ extension = ".html" mime_type = "text/html" compress = 0 }} )
cookie_secure=0
session_expiration=2419200
session_key="GLEWLWYD2_SESSION_ID"
login_api_enabled=true
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
use_secure_connection=false
secure_connection_key_file="{folder}/none"
secure_connection_pem_file="{folder}/none"
secure_connection_ca_file="{folder}/none"
allow_multiple_user_per_session=true
hash_algorithm="SHA512"
database = {{ type = "sqlite3" path = "{folder}/database" }}
"""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def make_database(path):
    with gzip.open(SCHEMA, "rt") as schema, sqlite3.connect(path) as database:
        database.executescript(schema.read())


def start(folder, port):
    # Debian has no login page for it.
    os.makedirs(os.path.join(folder, "web"), exist_ok=True)
    with open(os.path.join(folder, "web", "login.html"), "w") as file:
        file.write("<!doctype html><title>Sign in</title><p>Sign in</p>")
    path = os.path.join(folder, "glewlwyd.conf")
    with open(path, "w") as file:
        file.write(CONFIGURATION.format(port=port, folder=folder))
    # PR_SET_PDEATHSIG: the child ends with this process.
    ends_with_us = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    child = subprocess.Popen(
        ["glewlwyd", f"--config-file={path}"], stdout=sys.stderr, stderr=sys.stderr, preexec_fn=ends_with_us)
    for _ in range(600):
        if child.poll() is not None:
            return None
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return child
        except OSError:
            time.sleep(0.1)
    sys.exit("glewlwyd does not listen")


def openssl(*arguments, text=None):
    return subprocess.run(["openssl", *arguments], input=text, check=True, capture_output=True, text=True).stdout


def set_up(url, redirect, password):
    session = requests.Session()
    session.trust_env = False

    def post(path, document):
        response = session.post(url + path, json=document, timeout=60)
        if response.status_code != 200:
            sys.exit(f"{path}: {response.status_code} {response.text}")

    # The account of a new database.
    post("/auth/", {"username": "admin", "password": "password"})
    key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout")
    post("/mod/plugin/", {
        "module": "oidc", "name": "oidc", "display_name": "OpenID Connect", "enabled": True,
        "parameters": {
            "iss": url + "/oidc", "jwt-type": "ecdsa", "jwt-key-size": "256", "key": key,
            "cert": openssl("ec", "-pubout", text=key), "access-token-duration": 3600,
            "refresh-token-duration": 1209600, "code-duration": 600, "refresh-token-rolling": True,
            "refresh-token-one-use": "always", "allow-non-oidc": True, "auth-type-code-enabled": True,
            "auth-type-id-token-enabled": True, "auth-type-refresh-enabled": True, "pkce-allowed": True,
            "pkce-method-plain-allowed": False, "introspection-revocation-allowed": True,
            "introspection-revocation-allow-target-client": True, "introspection-revocation-auth-scope": [],
            "subject-type": "public", "address-claim": {"type": "no"}, "claims": [], "secret-type": "",
            "scope": [{"name": "openid", "refresh-token-rolling": True}],
        },
    })
    post("/client/", {
        "client_id": "countersign", "name": "Countersign", "confidential": False, "enabled": True,
        "authorization_type": ["code", "refresh_token", "delete_token"], "redirect_uri": [redirect], "scope": [],
    })
    post("/user/", {
        "username": "jdoe", "name": "Jane Doe", "password": password, "email": "jdoe@acme.example", "enabled": True,
        "scope": ["g_profile", "openid"],
    })


def main():
    folder, redirect = sys.argv[1:3]
    make_database(os.path.join(folder, "database"))
    for _ in range(3):
        port = free_port()
        child = start(folder, port)
        if child:
            break
    else:
        sys.exit("glewlwyd does not start")
    set_up(f"http://127.0.0.1:{port}/api", redirect, os.environ["PASSWORD"])
    print(f"listening {port}", flush=True)
    child.wait()


main()
