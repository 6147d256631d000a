// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An origin that challenges for a bearer token; Servers/bearer_origin.py lists what `control` may contain.
package final class BearerOrigin: Sendable {
    package let port: Int
    package let log: RequestLog
    private let scheme: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ control: [String: any Sendable], isTLS: Bool = true) throws {
        folder = try TemporaryFolder("bearer")
        log = RequestLog(path: folder.file("requests"))
        scheme = isTLS ? "https" : "http"
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("bearer_origin.py"), try Self.json(control), log.path]
                + (isTLS ? [pki.certificate("server"), pki.key("server")] : []),
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "\(scheme)://bearer.test.localhost:\(port)" }

    /// Changes the origin's behaviour from the next request on.
    package func change(_ control: [String: any Sendable]) throws {
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-k", "--resolve", "bearer.test.localhost:\(port):127.0.0.1", "--data-binary",
                try Self.json(control), "\(url)/control",
            ], in: folder)
        guard done.status == 0 else { throw HarnessError("the origin did not change: \(done.said)") }
    }

    private static func json(_ control: [String: any Sendable]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: control), as: UTF8.self)
    }
}
