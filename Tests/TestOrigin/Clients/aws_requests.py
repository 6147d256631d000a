#!/usr/bin/env python3
"""Signs COUNT random requests with botocore, each with keys that stand for others and with the real ones.

usage: aws_requests.py SEED COUNT

Writes one JSON object per line: the request as the client sends it (method, host, target, fields, content), the real
keys, and what botocore makes with them: the value of Authorization, or the target of a presigned request.
"""

import base64
import datetime
import json
import random
import sys
from urllib.parse import quote, urlsplit

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ODD = "abcXYZ019-._~ !\"#$%&'()*+,/:;<=>?@[\\]^`{|}éሴ\U0001f511"
NOW = datetime.datetime(2026, 11, 28, 22, 33, 44, tzinfo=datetime.timezone.utc)


def text(chance, most, alphabet=ODD):
    return "".join(chance.choice(alphabet) for _ in range(chance.randint(1, most)))


def path(chance):
    parts = [quote(text(chance, 8), safe="") for _ in range(chance.randint(0, 4))]
    parts = [chance.choice(["", ".", "..", part]) if chance.random() < 0.3 else part for part in parts]
    return "/" + "/".join(parts) + chance.choice(["", "/"])


def query(chance):
    pairs = [(text(chance, 6), chance.choice(["", text(chance, 10)])) for _ in range(chance.randint(0, 5))]
    if pairs and chance.random() < 0.3:
        pairs.append((pairs[0][0], text(chance, 4)))
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def signed(request, keys, auth, region, service, expires):
    """The request with a signature, as a new object."""
    copy = AWSRequest(method=request["method"], url=request["url"], data=request["content"], headers=request["fields"])
    options = {} if expires is None else {"expires": expires}
    auth(Credentials(*keys), service, region, **options).add_auth(copy)
    return copy


def target(url):
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def random_request(chance):
    service = chance.choice(["s3", "s3", "dynamodb", "execute-api", "sts", "s3express", "glacier"])
    region = chance.choice(["us-east-1", "eu-central-1", "us-gov-west-1"])
    is_s3 = service in ("s3", "s3express")
    method = chance.choice(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"])
    fields = {}
    if chance.random() < 0.5:
        fields["Content-Type"] = chance.choice(["application/json", "  text/plain;   charset=utf-8 "])
    if chance.random() < 0.3:
        fields["X-Amz-Target"] = "DynamoDB_20120810.Get\tItem"
    if chance.random() < 0.2:
        fields["Date"] = "replaced by botocore"
    if chance.random() < 0.3:
        fields["x-amz-meta-" + text(chance, 6, "abc019-")] = text(chance, 12, "abcXYZ019 ,;:\"'=  ")
    host = f"{service}.{region}.amazonaws.com"
    url = f"https://{host}{path(chance)}"
    parameters = query(chance)
    if parameters:
        url += "?" + parameters
    is_presigned = chance.random() < 0.35
    # botocore moves the content of a presigned request to the query.
    has_content = method in ("PUT", "POST", "PATCH") and not is_presigned
    content = text(chance, 30).encode() if has_content else b""
    request = {"method": method, "url": url, "fields": fields, "content": content}
    if is_presigned:
        fields.pop("Date", None)
        auth = botocore.auth.S3SigV4QueryAuth if is_s3 else botocore.auth.SigV4QueryAuth
    else:
        auth = botocore.auth.S3SigV4Auth if is_s3 else botocore.auth.SigV4Auth
    expires = chance.randint(1, 604800) if is_presigned else None
    token = lambda name: f"{name}/{text(chance, 40, 'abcXYZ019+/=')}" if chance.random() < 0.5 else None
    placeholder = ("countersign", "any secret", token("theirs"))
    real = ("AKIA" + text(chance, 12, "ABCDEFGH234567"), text(chance, 40, "abcXYZ019+/"), token("ours"))
    sent = signed(request, placeholder, auth, region, service, expires)
    wanted = signed(request, real, auth, region, service, expires)
    return {
        "method": method,
        "host": host,
        "target": target(sent.url),
        "fields": [[name, str(value)] for name, value in sent.headers.items()],
        "content": base64.b64encode(content).decode(),
        "keys": [value or "" for value in real],
        "authorization": wanted.headers.get("Authorization"),
        "presigned": target(wanted.url) if is_presigned else None,
    }


def main():
    chance = random.Random(int(sys.argv[1]))
    botocore.auth.get_current_datetime = lambda *arguments, **options: NOW
    for _ in range(int(sys.argv[2])):
        print(json.dumps(random_request(chance)))


main()
