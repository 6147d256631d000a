// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A server for device management at two origins, whose pages are a script; Servers/mdm_server.py describes it.
package final class MDMServer: Sendable {
    package struct Answer: Encodable, Sendable {
        var status = 200
        var fields: [[String]] = []
        var type = "text/html"
        var body = ""
        var needs: [String]?

        package init(
            _ status: Int = 200, _ fields: [(String, String)] = [], type: String = "text/html", _ body: String = "",
            needs: (String, String)? = nil
        ) {
            self.status = status
            self.fields = fields.map { [$0, $1] }
            self.type = type
            self.body = body
            self.needs = needs.map { [$0, $1] }
        }

        package static func redirect(to location: String, _ fields: [(String, String)] = []) -> Answer {
            Answer(302, [("Location", location)] + fields)
        }

        package static func page(_ title: String, _ body: String, _ fields: [(String, String)] = []) -> Answer {
            Answer(200, fields, "<!doctype html><meta charset=utf-8><title>\(title)</title><h1>\(title)</h1>\(body)")
        }
    }

    package struct Request: Decodable, Sendable {
        /// `mdm` or `other`.
        package let origin: String
        package let path: String
        /// With the query.
        package let target: String
        /// By name in lower case.
        package let fields: [String: String]
    }

    private let folder: TemporaryFolder
    private let process: ChildProcess
    private let log: String
    /// `host:port`.
    package let host: String
    package let otherHost: String
    package var origin: String { "https://\(host)" }
    package var other: String { "https://\(otherHost)" }

    package init(_ routes: [String: [Answer]]) throws {
        folder = try TemporaryFolder("mdm")
        log = folder.file("requests")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [
                Tool.server("mdm_server.py"), String(decoding: try JSONEncoder().encode(routes), as: UTF8.self), log,
                pki.certificate("server"), pki.key("server"),
            ], capture: folder.file("server"))
        let ports = try process.line(after: "listening ").split(separator: " ")
        guard ports.count == 2 else { throw HarnessError("the server for device management does not start") }
        host = "mdm.test.localhost:\(ports[0])"
        otherHost = "other.test.localhost:\(ports[1])"
    }

    package var requests: [Request] {
        TextFile.lines(log).compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    /// The requests for a path.
    package func requests(_ path: String) -> [Request] { requests.filter { $0.path == path } }
}
