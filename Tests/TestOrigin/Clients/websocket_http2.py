# SPDX-License-Identifier: Apache-2.0
"""websocket_http2.py PROXY CA HOST:PORT ITEM...: opens WebSockets in streams of one HTTP/2 connection (RFC 8441).

The connection leads through a CONNECT to PROXY (`127.0.0.1:PORT`). ITEM is [PROTOCOL=]PATH[?CONTENT]. The client sends
CONTENT, or as many octets as it says if that is a number, and then ends its direction. A line of JSON per item has
"path", "status", "content" (its length if it is long), "end" (`whole`, or the code of a reset) and "isSame", whether
the content is what was sent, with `bye` after it.
"""

import json
import os
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

SECONDS = 60


def connect(proxy, ca, target):
    host, port = proxy.rsplit(":", 1)
    raw = socket.create_connection((host, int(port)), SECONDS)
    raw.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = raw.recv(4096)
        if not piece:
            sys.exit(f"the proxy closed the connection after {answer}")
        answer += piece
    if b" 200 " not in answer.split(b"\r\n")[0]:
        sys.exit(f"the proxy said {answer}")
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(raw, server_hostname=target.split(":")[0])


class Client:
    def __init__(self, proxy, ca, target):
        self.target = target
        self.socket = connect(proxy, ca, target)
        self.http2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.http2.initiate_connection()
        self.flush()
        while self.http2.remote_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL) != 1:
            self.events()

    def flush(self):
        self.socket.sendall(self.http2.data_to_send())

    def events(self):
        received = self.socket.recv(65536)
        if not received:
            sys.exit("the proxy ended the connection")
        events = self.http2.receive_data(received)
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if isinstance(event, h2.events.ConnectionTerminated):
                sys.exit(f"GOAWAY {event.error_code}")
        self.flush()
        return events

    def open(self, item):
        protocol, equals, path = item.rpartition("=")
        path, _, content = path.partition("?")
        stream = self.http2.get_next_available_stream_id()
        fields = [
            (":method", "CONNECT"), (":protocol", protocol if equals else "websocket"), (":scheme", "https"),
            (":path", path), (":authority", self.target), ("sec-websocket-version", "13"),
            ("sec-websocket-key", "of this client"), ("origin", f"https://{self.target}"),
        ]  # fmt: skip
        self.http2.send_headers(stream, fields)
        self.flush()
        content = os.urandom(int(content)) if content.isdigit() else content.encode()
        seen, received, end, left, isEnded = None, b"", None, content, False
        while end is None:
            while seen == "200" and left and (window := self.http2.local_flow_control_window(stream)) > 0:
                count = min(window, self.http2.max_outbound_frame_size, len(left))
                self.http2.send_data(stream, left[:count])
                left = left[count:]
            if seen == "200" and not left and not isEnded:
                self.http2.end_stream(stream)
                isEnded = True
            self.flush()
            for event in self.events():
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    seen = dict(event.headers)[":status"]
                elif isinstance(event, h2.events.DataReceived):
                    received += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    end = "whole"
                elif isinstance(event, h2.events.StreamReset):
                    end = event.error_code
        text = received.decode("latin-1") if len(received) < 1000 else len(received)
        same = received == content + b"bye"
        print(json.dumps({"path": path, "status": seen, "content": text, "end": end, "isSame": same}))


client = Client(*sys.argv[1:4])
for item in sys.argv[4:]:
    client.open(item)
