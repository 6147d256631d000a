// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A request in the origin's log. A field that the server does not log is nil.
package struct LoggedRequest: Sendable, Decodable {
    package let connection: Int?
    package let port: Int?
    package let method: String?
    package let path: String?
    /// `basic`, `negotiate` or `authenticate` from TestOrigin; `Basic` or `Digest` from Apache; `-` or nil for none.
    package let auth: String?
    /// The whole `Authorization` value, from nginx.
    package let authorization: String?
    package let proxyAuthorization: String?
    package let why: String?
    package let user: String?
    /// The client certificate's subject, or its common name.
    package let client: String?
    package let tls: String?
    package let status: Int?
    package let received: Int?
    /// `h2` or `http/1.1`, from Servers/http2_origin.py, and next: whether there was an authorization, and how the
    /// stream ended.
    package let version: String?
    package let authorized: Bool?
    package let outcome: String?
    package let fields: [String]?
}

/// Reads a log with one JSON object per line.
package struct RequestLog: Sendable {
    package let path: String

    /// All complete lines so far.
    package var requests: [LoggedRequest] {
        TextFile.lines(path).compactMap { try? JSONDecoder().decode(LoggedRequest.self, from: Data($0.utf8)) }
            .filter { $0.method != nil }
    }

    /// The same, once there are `count`: Apache logs a request after its response.
    package func requests(atLeast count: Int) -> [LoggedRequest] {
        poll { requests.count >= count ? requests : nil } ?? requests
    }

    /// The requests for one path, with any query.
    package func requests(path wanted: String) -> [LoggedRequest] {
        requests.filter { $0.path?.split(separator: "?").first.map(String.init) == wanted }
    }
}

/// The origin in Python: without authentication, or with Basic, NTLM or Negotiate, which pyspnego verifies.
package final class ChallengingOrigin: Sendable {
    package enum Mode: String, Sendable { case open, basic, ntlm, negotiate }

    package let port: Int
    package let log: RequestLog
    package let root: String
    private let folder: TemporaryFolder
    private let process: ChildProcess
    private let account: String

    /// - Parameter certificate: the name of a certificate in `TestPKI`, or nil for http.
    package init(_ mode: Mode, certificate: String? = "server", user: String, password: String) throws {
        folder = try TemporaryFolder("origin")
        root = folder.file("www")
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        log = RequestLog(path: folder.file("requests"))
        let parts = user.split(separator: "\\", maxSplits: 1).map(String.init)
        account = parts.count == 2 ? "\(parts[0]):\(parts[1])" : ":\(user)"
        let users = try folder.write("users", "\(account):\(password)\n")
        var arguments = ["--mode", mode.rawValue, "--users", users, "--root", root, "--log", log.path]
        if let certificate {
            let pki = try TestPKI.shared
            arguments += ["--cert", pki.certificate(certificate), "--key", pki.key(certificate)]
        }
        process = try ChildProcess(
            try Tool.python(), [Tool.server("origin.py")] + arguments, capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package func stop() { process.stop() }

    /// Changes the user's password at the origin, which uses Basic.
    package func change(password: String) throws { try folder.write("users", "\(account):\(password)\n") }
}

/// An origin that challenges for Digest; Servers/digest_origin.py lists what `control` may contain.
package final class DigestOrigin: Sendable {
    package let port: Int
    package let log: RequestLog
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ control: [String: any Sendable], user: String, password: String) throws {
        folder = try TemporaryFolder("digest")
        log = RequestLog(path: folder.file("requests"))
        let all = control.merging(["user": user, "password": password]) { $1 }
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [
                Tool.server("digest_origin.py"),
                String(decoding: try JSONSerialization.data(withJSONObject: all), as: UTF8.self), log.path,
                pki.certificate("server"), pki.key("server"),
            ], capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "https://digest.test.localhost:\(port)" }
}

/// A server that misbehaves in one way; Servers/misbehave.py lists them.
package final class MisbehavingOrigin: Sendable {
    package let port: Int
    private let logPath: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ mode: String, certificate: String = "server") throws {
        folder = try TemporaryFolder("misbehave")
        logPath = folder.file("requests")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("misbehave.py"), mode, logPath, pki.certificate(certificate), pki.key(certificate)],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// The number of connections that sent a request.
    package var requestCount: Int { TextFile.lines(logPath).count }
}

/// A WebSocket echo server, with `websockets` from PyPI.
package final class WebSocketEcho: Sendable {
    package let port: Int
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("websocket")
        process = try ChildProcess(
            try Tool.python(), [Tool.server("websocket_echo.py")], capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }
}

/// A server that answers the requests of WebSockets in the ways that Servers/websocket_faults.py lists.
package final class WebSocketFaults: Sendable {
    package let port: Int
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("websocket-faults")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("websocket_faults.py"), pki.certificate("server"), pki.key("server")],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }
}
