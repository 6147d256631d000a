# SPDX-License-Identifier: Apache-2.0
"""boto3, with keys that stand for others.

Usage: aws_client.py ENDPOINT PROXY ANCHOR ID    Prints a line for each call: its name and what came of it.
"""

import io
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, proxy, anchor, access_key = sys.argv[1:]


def client(service):
    return boto3.client(
        service, endpoint_url=endpoint, verify=anchor, region_name="eu-central-1", aws_access_key_id=access_key,
        aws_secret_access_key="none",
        config=Config(
            proxies={"https": proxy}, retries={"max_attempts": 0}, signature_version=None,
            s3={"addressing_style": "path"}))


def call(name, body):
    try:
        print(name, body(), flush=True)
    except ClientError as error:
        print(name, error.response["Error"]["Code"], flush=True)


s3, table, key = client("s3"), client("dynamodb"), "a b/ü+&=.txt"
region = {"LocationConstraint": "eu-central-1"}
call("bucket", lambda: s3.create_bucket(Bucket="bucket", CreateBucketConfiguration=region) and "made")
call("put", lambda: s3.put_object(Bucket="bucket", Key=key, Body=b"x" * 100_000) and "put")
call("get", lambda: len(s3.get_object(Bucket="bucket", Key=key)["Body"].read()))
call("list", lambda: s3.list_objects_v2(Bucket="bucket")["Contents"][0]["Key"] == key)
call("multipart", lambda: s3.upload_fileobj(io.BytesIO(b"m" * 9_000_000), "bucket", "large"))
call("size", lambda: s3.head_object(Bucket="bucket", Key="large")["ContentLength"])
attribute = {"AttributeName": "k", "AttributeType": "S"}
call(
    "table",
    lambda: table.create_table(
        TableName="table", KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}], AttributeDefinitions=[attribute],
        BillingMode="PAY_PER_REQUEST") and "made")
item = {"k": {"S": "1"}, "v": {"S": "z" * 200_000}}
call("item", lambda: table.put_item(TableName="table", Item=item) and "put")
call("read", lambda: len(table.get_item(TableName="table", Key={"k": {"S": "1"}})["Item"]["v"]["S"]))
call("who", lambda: client("sts").get_caller_identity()["Arn"].split("/")[-1])
