# SPDX-License-Identifier: Apache-2.0
"""moto's servers for Amazon Web Services, which verify signatures.

Usage: aws_server.py CERT KEY    Prints `keys ID SECRET` of a user who may do everything, then `listening PORT`.
"""

import json
import logging
import os
import sys

# The calls before this one that need no signature: those that make the user.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "3"

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def main(certificate, key):
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = DomainDispatcherApplication(create_backend_app)
    # Without TLS for itself.
    inner = make_server("127.0.0.1", 0, app, threaded=True)
    import threading

    threading.Thread(target=inner.serve_forever, daemon=True).start()
    iam = boto3.client(
        "iam", endpoint_url=f"http://127.0.0.1:{inner.port}", region_name="us-east-1", aws_access_key_id="nobody",
        aws_secret_access_key="nobody")
    iam.create_user(UserName="program")
    statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    iam.put_user_policy(
        UserName="program", PolicyName="all",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    made = iam.create_access_key(UserName="program")["AccessKey"]
    print("keys", made["AccessKeyId"], made["SecretAccessKey"], flush=True)
    outer = make_server("127.0.0.1", 0, app, threaded=True, ssl_context=(certificate, key))
    print("listening", outer.port, flush=True)
    outer.serve_forever()


main(*sys.argv[1:])
