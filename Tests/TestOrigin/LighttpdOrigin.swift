// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Debian's lighttpd with Digest over TLS: `/md5/index`, `/sha256/index`, `/both/index` and, with hashed user names,
/// `/userhash/index`.
package final class LighttpdOrigin: Sendable {
    package let port: Int
    package let log: RequestLog
    private let folder: TemporaryFolder
    private let process: Mutex<ChildProcess>

    package init(user: String, password: String, speaksHTTP2: Bool = false) throws {
        folder = try TemporaryFolder("lighttpd")
        let lighttpd = try Tool.path("lighttpd")
        let realms = ["md5", "sha256", "both", "userhash"]
        for realm in realms { try folder.write("www/\(realm)/index", "lighttpd \(realm)\n") }
        try folder.write("users", try Self.users(realms, user: user, password: password, in: folder))
        let pki = try TestPKI.shared
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate("server"), "KEY": pki.key("server"),
            "HTTP2": speaksHTTP2 ? "enable" : "disable",
        ]
        let folder = folder
        let started = try ConfiguredServer.start(
            template: "lighttpd.conf", values, ports: ["HTTPS"], in: folder
        ) { conf in
            try ChildProcess(lighttpd, ["-D", "-f", conf], capture: folder.file("server"))
        }
        process = Mutex(started.process)
        port = started.ports[0]
        log = RequestLog(path: folder.file("access.log"))
    }

    /// The accounts, as mod_authn_file reads them: `user:realm:digest:userhash`, one line for each algorithm.
    private static func users(
        _ realms: [String], user: String, password: String, in folder: TemporaryFolder
    ) throws -> String {
        let script = """
            import hashlib, sys
            user, *realms = sys.argv[1:]
            password = sys.stdin.read()
            for realm in realms:
                for name in ("md5", "sha256"):
                    texts = f"{user}:{realm}:{password}", f"{user}:{realm}"
                    print(user, realm, *(hashlib.new(name, text.encode()).hexdigest() for text in texts), sep=":")
            """
        let done = try Command.run(
            Tool.path("python3"), ["-c", script, user] + realms, input: password, in: folder)
        guard done.status == 0 else { throw HarnessError("lighttpd's users: \(done.said)") }
        return done.output
    }

    package var url: String { "https://lighttpd.test.localhost:\(port)" }

    /// Starts the server again, `seconds` later. It replaces a nonce after more than nine minutes; after ten, the nonce
    /// is stale.
    package func restart(afterSeconds seconds: Int) throws {
        process.withLock { $0.stop() }
        let server = try ChildProcess(
            try Tool.path("lighttpd"), ["-D", "-f", folder.file("lighttpd.conf")],
            environment: FakeTime.environment(seconds: seconds), capture: folder.file("server-\(seconds)"))
        process.withLock { $0 = server }
        guard poll({ Loopback.answers(port: port) ? true : nil }) == true else {
            throw HarnessError("lighttpd did not start again: \(server.errorOutput)\(folder.text("error.log"))")
        }
    }
}
