// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Debian's Apache with Basic and Digest over TLS and over plain http: `/basic`, `/basic/forbidden` and `/digest`, with
/// `git http-backend` at `/digest/git`. On the last two ports, `/certificate` requests a client certificate on an
/// established connection.
package final class ApacheOrigin: Sendable {
    package let httpPort: Int
    package let httpsPort: Int
    /// `/certificate` renegotiates.
    package let renegotiatingPort: Int
    /// `/certificate` uses post-handshake authentication.
    package let postHandshakePort: Int
    package let log: RequestLog
    package let root: String
    private let folder: TemporaryFolder
    private let echo: WebSocketEcho
    private let process: ChildProcess

    package init(user: String, password: String) throws {
        folder = try TemporaryFolder("apache")
        root = folder.file("www")
        echo = try WebSocketEcho()
        let pki = try TestPKI.shared
        let apache = try Tool.path("apache2")
        for path in ["open", "basic/index", "basic/forbidden/index", "digest/index", "certificate/index"] {
            try folder.write("www/\(path)", "apache \(path)\n")
        }
        let made = try Command.run(
            try Tool.path("htpasswd"), ["-ciB", "-C", "4", folder.file("users"), user], input: password, in: folder)
        guard made.status == 0 else { throw HarnessError("htpasswd: \(made.said)") }
        let digest = try Command.run(
            "/bin/sh",
            [
                "-c",
                "printf '%s:Apache:' \"$0\"; cat - | { printf '%s:Apache:' \"$0\"; cat; } | md5sum | cut -d' ' -f1",
                user,
            ],
            input: password, in: folder)
        try folder.write("digest", digest.output)
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate("server"), "KEY": pki.key("server"),
            "CLIENT_CA_A": pki.certificate("client-ca-a"), "MODULES": "/usr/lib/apache2/modules",
            "USER": getuid() == 0 ? "User www-data\nGroup www-data" : "", "WEBSOCKET": String(echo.port),
        ]
        let folder = folder
        let names = ["HTTP", "HTTPS", "TLS12", "TLS13"]
        let started = try ConfiguredServer.start(template: "apache.conf", values, ports: names, in: folder) { conf in
            try ChildProcess(apache, ["-X", "-f", conf], capture: folder.file("server"))
        }
        process = started.process
        httpPort = started.ports[0]
        httpsPort = started.ports[1]
        renegotiatingPort = started.ports[2]
        postHandshakePort = started.ports[3]
        log = RequestLog(path: folder.file("access.log"))
    }
}
