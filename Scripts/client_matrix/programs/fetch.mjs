// SPDX-License-Identifier: Apache-2.0
// fetch.mjs fetch|https|axios URL [FILE]: prints the page, or the response to a POST of the file.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import http from "node:http";
import https from "node:https";

const [kind, url, file] = process.argv.slice(2);
const body = file ? readFileSync(file) : undefined;
const method = file ? "POST" : "GET";

async function fetched() {
  if (kind === "axios") {
    const axios = createRequire(process.cwd() + "/")("axios");
    return (await axios({ url, method, data: body, responseType: "text", transformResponse: (x) => x })).data;
  }
  const response = await fetch(url, { method, body });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
}

function requested(address, left) {
  return new Promise((resolve, reject) => {
    const library = address.startsWith("https:") ? https : http;
    const request = library.request(address, { method }, (response) => {
      if (response.statusCode !== 200) response.resume();
      if (response.statusCode === 302 && left > 0) return resolve(requested(response.headers.location, left - 1));
      if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`));
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => (text += part));
      response.on("end", () => resolve(text));
    });
    request.on("error", reject);
    request.end(body);
  });
}

try {
  process.stdout.write(await (kind === "https" ? requested(url, 5) : fetched()));
} catch (error) {
  console.error(String(error.cause ?? error));
  process.exit(1);
}
