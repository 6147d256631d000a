# SPDX-License-Identifier: Apache-2.0
"""The APIs of two kinds of language models, as far as their SDKs need them.

Usage: model_server.py CERT KEY TOKEN    Prints `listening PORT`, then a line for each request: its path and status.

POST /v1/chat/completions wants `Authorization: Bearer TOKEN`, and POST /v1/messages and GET /v1/models that or
`X-Api-Key: TOKEN`. Without it, they are a 401 that has no challenge and repeats the key.

The model `echo` answers with all fields of the request. A stream pauses before its last part until a GET /v1/models.
"""

import http.server
import json
import ssl
import sys
import threading

certificate, key, token = sys.argv[1:]
words = ["Hello", " from", " the", " server"]
gate = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def is_permitted(self):
        sent = self.headers.get_all("Authorization", []), self.headers.get_all("X-Api-Key", [])
        return sent == ([f"Bearer {token}"], []) or sent == ([], [token]) and self.path != "/v1/chat/completions"

    def answer(self, status, content):
        print(self.path, status, flush=True)
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        sent = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("X-Api-Key")
        message = f"Incorrect API key provided: {sent}."
        error = {"message": message, "type": "authentication_error", "code": "invalid_api_key", "param": None}
        self.answer(401, {"type": "error", "error": error})

    def do_GET(self):
        if not self.is_permitted():
            return self.refuse()
        gate.set()
        model = {"id": "small", "object": "model", "type": "model", "created": 0, "owned_by": "test",
                 "created_at": "2026-01-01T00:00:00Z", "display_name": "Small"}
        page = {"has_more": False, "first_id": "small", "last_id": "small"}
        self.answer(200, {"object": "list", "data": [model], **page})

    def do_POST(self):
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.is_permitted():
            return self.refuse()
        make = chat if self.path == "/v1/chat/completions" else message
        if not wanted.get("stream"):
            echo = f"{self.headers}" if wanted["model"] == "echo" else "".join(words)
            return self.answer(200, make(wanted["model"], echo))
        print(self.path, 200, flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        gate.clear()
        events = chat_events() if make is chat else message_events()
        for event in events:
            if event:
                self.chunk(event.encode())
            elif not gate.wait(240):
                self.close_connection = True
                return
        self.chunk(b"")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


def chat(model, text):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}


def chat_events():
    for word in words:
        if word == words[-1]:
            yield None
        choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
        part = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "small", "choices": [choice]}
        yield f"data: {json.dumps(part)}\n\n"
    yield "data: [DONE]\n\n"


def message(model, text):
    return {
        "id": "m", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": text}] if text else [],
        "usage": {"input_tokens": 1, "output_tokens": 1}}


def message_events():
    def event(type, **members):
        return f"event: {type}\ndata: {json.dumps({'type': type, **members})}\n\n"

    yield event("message_start", message=message("small", ""))
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for word in words:
        if word == words[-1]:
            yield None
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 4})
    yield event("message_stop")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("listening", server.server_port, flush=True)
server.serve_forever()
