// SPDX-License-Identifier: Apache-2.0

// verify.js ROOT HOST:PORT...: performs a TLS handshake with 127.0.0.1:PORT for each HOST and trusts only ROOT. Prints
// one line per HOST: the host, and "accepted" or the error.
"use strict";
const fs = require("fs");
const net = require("net");
const tls = require("tls");

const ca = fs.readFileSync(process.argv[2]);

function verify(place) {
  const [host, port] = place.split(":");
  return new Promise((done) => {
    const name = net.isIP(host) ? {} : { servername: host };
    const socket = tls.connect({ host: "127.0.0.1", port, ca, ...name }, () => {
      done(`${host} accepted`);
      socket.destroy();
    });
    socket.on("error", (error) => done(`${host} ${error.code}: ${error.message}`));
  });
}

(async () => {
  for (const place of process.argv.slice(3)) console.log(await verify(place));
})();
