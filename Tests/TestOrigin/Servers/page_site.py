# SPDX-License-Identifier: Apache-2.0
"""Pages that send requests to other sites in every way that a browser has, and two sites of their own.

Usage: page_site.py CERTIFICATE KEY LOG USER PASSWORD    Prints `listening PORT` (https) and `plain PORT` (http).

/page?JSON   a page; JSON has "id" and "targets", each with "kind", "url" and perhaps "socket". Each request has the
             query ID.KIND.CELL. The page is loaded when all of them have ended.
/top?JSON    a page that leads the browser to "url" at once, with "method".
/api         asks for Basic and lets pages of every origin read it; /api-named lets the page in Origin read it.
/session     says which cookie `sid` it got; /session/start sets it.

The log has one JSON object per request to /api, /api-named and /session, and one per page with its "results".
"""

import base64
import json
import sys
import threading
import urllib.parse

from logging_server import LoggingHandler, LoggingServer

CERTIFICATE, KEY, LOG, USER, PASSWORD = sys.argv[1:]
ANSWER = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

TOP = """<!doctype html><meta charset=utf-8><body><script>
const target = JSON.parse(decodeURIComponent(location.search.slice(1)));
if (target.method == "GET") location.href = target.url;
else {
  // The query of a form with POST stays.
  const form = document.createElement("form");
  form.method = "POST"; form.action = target.url; document.body.append(form); form.submit();
}
</script>"""

PAGE = """<!doctype html><meta charset=utf-8><title>page</title><body><img src="/hold?ID"><script>
const plan = JSON.parse(decodeURIComponent(location.search.slice(1)));
const results = {};
// These may never say that they are loaded; in Firefox, frames wait for a person's password.
const mayHang = ["object", "video", "prefetch"];
if (navigator.userAgent.includes("Firefox")) mayHang.push("iframe", "form-iframe-POST");

function pause(milliseconds) { return new Promise(resolve => setTimeout(resolve, milliseconds)); }

function element(name, fields) { return Object.assign(document.createElement(name), fields); }

// Resolves when the element has been loaded or has failed.
function loaded(added) {
  return new Promise(resolve => {
    added.onload = () => resolve("loaded"); added.onerror = () => resolve("failed");
    document.body.append(added);
  });
}

function form(name, method, url) {
  const frame = element("iframe", {name});
  const sent = loaded(frame);
  frame.onload = null;
  return new Promise(resolve => {
    const made = element("form", {method, action: url, target: name});
    for (const [key, value] of new URL(url).searchParams)
      if (method == "GET") made.append(element("input", {name: key, value, type: "hidden"}));
    document.body.append(made);
    frame.onload = () => resolve("loaded");
    made.submit();
  });
}

function socket(url) {
  return new Promise(resolve => {
    const opened = new WebSocket(url);
    opened.onopen = () => { resolve("open"); opened.close(); };
    opened.onerror = () => resolve("failed");
  });
}

async function viaServiceWorker(url) {
  if (!navigator.serviceWorker) return "none";
  await navigator.serviceWorker.register("/sw.js");
  const worker = (await navigator.serviceWorker.ready).active;
  return new Promise(resolve => {
    const channel = new MessageChannel();
    channel.port1.onmessage = event => resolve(event.data);
    worker.postMessage(url, [channel.port2]);
  });
}

function cells(target) {
  const list = {};
  for (const mode of ["cors", "no-cors"])
    for (const credentials of ["omit", "same-origin", "include"])
      for (const method of ["GET", "POST"])
        list[`fetch-${mode}-${credentials}-${method}`] = async url => {
          const body = method == "POST" ? "x=1" : undefined;
          const headers = body ? {"Content-Type": "application/x-www-form-urlencoded"} : {};
          const response = await fetch(url, {mode, credentials, method, body, headers, cache: "no-store"});
          return response.type == "opaque" ? "opaque" : `${response.status} ${await response.text()}`;
        };
  list["preflight-PUT"] = async url => {
    const response = await fetch(url, {method: "PUT", credentials: "include", body: "x"});
    return `${response.status} ${await response.text()}`;
  };
  list["img"] = url => loaded(element("img", {src: url}));
  list["script"] = url => loaded(element("script", {src: url}));
  list["style"] = url => loaded(element("link", {rel: "stylesheet", href: url}));
  list["prefetch"] = url => loaded(element("link", {rel: "prefetch", href: url}));
  list["speculation"] = async url => {
    const urls = [url];
    const textContent = JSON.stringify({prefetch: [{urls, eagerness: "immediate"}]});
    document.body.append(element("script", {type: "speculationrules", textContent}));
    await pause(2500);
    return "asked";
  };
  list["beacon"] = async url => `${navigator.sendBeacon(url, "x")}`;
  list["iframe"] = url => loaded(element("iframe", {src: url}));
  list["object"] = url => loaded(element("object", {data: url}));
  list["video"] = url => loaded(element("video", {src: url, preload: "auto"}));
  list["form-iframe-POST"] = url => form(`f-${target.kind}-POST`, "POST", url);
  list["service-worker"] = viaServiceWorker;
  // Firefox asks the person for a password, and the page waits. Their fields are those of fetch.
  if (!navigator.userAgent.includes("Firefox")) {
    list["xhr"] = url => new Promise(resolve => {
      const request = new XMLHttpRequest();
      request.open("GET", url); request.withCredentials = true;
      request.onload = () => resolve(`${request.status} ${request.responseText}`);
      request.onerror = () => resolve("failed");
      request.send();
    });
    list["events"] = url => new Promise(resolve => {
      const source = new EventSource(url, {withCredentials: true});
      source.onerror = () => { source.close(); resolve("failed"); };
    });
  }
  return list;
}

async function run() {
  const [sure, others] = [[], []];
  for (const target of plan.targets) {
    const list = cells(target);
    if (target.socket) list["websocket"] = () => socket(`${target.socket}?${plan.id}.${target.kind}.websocket`);
    for (const [name, send] of Object.entries(list)) {
      const query = `${plan.id}.${target.kind}.${name}`;
      const sent = send(`${target.url}?${query}`).catch(error => `${error}`)
        .then(outcome => { results[query] = outcome; });
      (mayHang.includes(name) ? others : sure).push(sent);
    }
  }
  // Those that may hang were sent with the rest.
  await Promise.race([Promise.all(sure), pause(120000)]);
  await Promise.race([Promise.all(others), pause(2000)]);
  for (const frame of document.querySelectorAll("iframe, object, video")) frame.remove();
  await fetch("/done?ID", {method: "POST", body: JSON.stringify({page: plan.id, results})});
}
run();
</script>"""

WORKER = """
self.addEventListener("install", event => self.skipWaiting());
self.addEventListener("activate", event => event.waitUntil(self.clients.claim()));
self.addEventListener("message", event => {
  fetch(event.data, {mode: "no-cors", credentials: "include", method: "POST", body: "x"})
    .then(response => event.ports[0].postMessage(response.type), error => event.ports[0].postMessage(`${error}`));
});
"""

ended = {}
ended_lock = threading.Lock()


def end_of(page):
    with ended_lock:
        return ended.setdefault(page, threading.Event())


class Handler(LoggingHandler):
    def respond(self):
        content = self.read_content()
        path, _, query = self.path.partition("?")
        if path == "/page":
            page = json.loads(urllib.parse.unquote(query))["id"]
            return self.reply(200, PAGE.replace("ID", page).encode(), [("Content-Type", "text/html")])
        if path == "/top":
            return self.reply(200, TOP.encode(), [("Content-Type", "text/html")])
        if path == "/sw.js":
            return self.reply(200, WORKER.encode(), [("Content-Type", "text/javascript")])
        if path == "/hold":
            end_of(query).wait(180)
            return self.reply(200, b"")
        if path == "/done":
            self.server.log(json.loads(content))
            end_of(query).set()
            return self.reply(200, b"")
        if path in ("/api", "/api-named"):
            return self.api(path)
        if path.startswith("/session"):
            return self.session(path)
        return self.reply(404, b"")

    def api(self, path):
        is_known = self.headers.get("Authorization") == ANSWER
        fields = [("Access-Control-Allow-Origin", "*")]
        if path == "/api-named":
            page = self.headers.get("Origin", "*")
            fields = [("Access-Control-Allow-Origin", page), ("Access-Control-Allow-Credentials", "true")]
        if self.command == "OPTIONS":
            fields += [("Access-Control-Allow-Methods", "PUT"), ("Access-Control-Allow-Headers", "*")]
        self.record(USER if is_known else None, 200 if is_known else 401)
        if not is_known:
            return self.reply(401, b"who?", [*fields, ("WWW-Authenticate", 'Basic realm="api"')])
        return self.reply(200, f"secret of {USER}".encode(), fields)

    def session(self, path):
        cookies = self.headers.get_all("Cookie") or []
        is_known = any("sid=person" in cookie for cookie in cookies)
        self.record("person" if is_known else None, 200)
        fields = [("Set-Cookie", "sid=person; Secure; HttpOnly; Path=/")] if path == "/session/start" else []
        return self.reply(200, b"person" if is_known else b"nobody", [*fields, ("Access-Control-Allow-Origin", "*")])

    def record(self, user, status):
        names = ["Origin", "Referer", "Sec-Purpose", "Upgrade-Insecure-Requests"]
        fields = [f"{name}: {value}" for name, value in self.headers.items()
                  if name.lower().startswith("sec-fetch") or name in names]  # fmt: skip
        self.server.log(
            {"method": self.command, "path": self.path, "user": user, "status": status, "fields": fields}
        )


secure = LoggingServer(Handler, LOG, CERTIFICATE, KEY)
plain = LoggingServer(Handler, LOG)
threading.Thread(target=plain.serve_forever, daemon=True).start()
print("plain", plain.server_address[1], flush=True)
secure.run()
