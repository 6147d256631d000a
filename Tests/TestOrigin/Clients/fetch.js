// SPDX-License-Identifier: Apache-2.0

// fetch.js URL: prints the page. This version of Node reads trust anchors from the environment, but not the proxy, so
// this program opens the tunnel itself.
"use strict";
const http = require("http");
const https = require("https");

const url = new URL(process.argv[2]);
const proxy = new URL(process.env.https_proxy);
const user = decodeURIComponent(proxy.username) + ":" + decodeURIComponent(proxy.password);
const tunnel = http.request({
  host: proxy.hostname,
  port: proxy.port,
  method: "CONNECT",
  path: url.host,
  headers: { Host: url.host, "Proxy-Authorization": "Basic " + Buffer.from(user).toString("base64") },
});
tunnel.on("connect", (answer, socket) => {
  if (answer.statusCode !== 200) throw new Error(`CONNECT: ${answer.statusCode}`);
  const options = { socket, servername: url.hostname, agent: false };
  https.get(url, options, (page) => page.pipe(process.stdout));
});
tunnel.end();
