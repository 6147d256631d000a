// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An entry in the log of Servers/est_server.py: a request or a failed handshake.
package struct ESTLogEntry: Sendable, Decodable {
    package let connection: Int
    package let method: String?
    package let path: String?
    /// `cacerts`, `csrattrs`, `simpleenroll` or `simplereenroll`.
    package let operation: String?
    /// The user that the password authenticated.
    package let user: String?
    /// The client certificate's subject.
    package let client: String?
    /// Whether the challengePassword was this connection's channel binding; nil without one.
    package let linked: Bool?
    package let tls: String?
    /// The scheme of the Authorization field; empty without one.
    package let authorization: String?
    package let contentType: String?
    /// The length of the request's body.
    package let body: Int?
    /// The error of a handshake that failed.
    package let handshake: String?
}

/// An EST server. It uses the openssl command to create certificates.
package final class ESTServer: Sendable {
    package let port: Int
    package let folder: TemporaryFolder
    private let process: ChildProcess

    /// The user and password that it accepts by default.
    package static let user = "jdoe"
    package static let password = "kanarie-est-7f10"

    /// The keys of `control` for a server that behaves as libest does: it wants a MAC address, a linked request and a
    /// key on P-384, ends its attributes with a NUL, needs a request's base64 in lines, and offers TLS 1.2 with P-256
    /// only.
    package static let libest: [String: any Sendable] = [
        "csrattrs": "MCYGBysGAQEBARYGCSqGSIb3DQEJBwYFK4EEACIGCWCGSAFlAwQCAg==", "attributesTail": "\0",
        "lineBreaks": "none", "needsLines": true, "linking": true, "tls": "1.2", "curve": "prime256v1",
    ]

    private static let authorities = Result {
        let folder = try TemporaryFolder("est-authorities")
        let made = try Command.run(
            try Tool.python(), [Tool.server("est_server.py"), folder.path, "make"], in: folder)
        guard made.status == 0 else { throw HarnessError("est_server.py: \(made.said)") }
        return folder
    }

    /// - Parameters:
    ///   - control: a JSON object with keys that est_server.py lists.
    ///   - environment: variables to add to the server's environment, such as those for faketime.
    ///   - port: 0 for any free port.
    package init(_ control: String = "{}", environment: [String: String] = [:], port: Int = 0) throws {
        folder = try TemporaryFolder("est")
        let made = try Self.authorities.get().path
        for name in try FileManager.default.contentsOfDirectory(atPath: made)
        where name.hasSuffix(".pem") || name.hasSuffix(".key") {
            try FileManager.default.copyItem(atPath: "\(made)/\(name)", toPath: folder.file(name))
        }
        try folder.write("control.json", control)
        process = try ChildProcess(
            try Tool.python(), [Tool.server("est_server.py"), folder.path, String(port)], environment: environment,
            capture: folder.file("server"))
        self.port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// Replaces the control file, which the server reads at the next request.
    package func set(_ control: String) throws { try folder.write("control.json", control) }

    /// `https://127.0.0.1:port`, and the label if there is one.
    package func address(label: String? = nil) -> String {
        "https://127.0.0.1:\(port)" + (label.map { "/\($0)" } ?? "")
    }

    /// The path of a certificate: `ca`, `new-ca`, `other-ca`, `sub-ca`, `new-by-old`, `old-by-new`, `server`.
    package func certificate(_ name: String) -> String { folder.file("\(name).pem") }

    package func key(_ name: String) -> String { folder.file("\(name).key") }

    /// Adds an authority, which the control file can then name.
    package func add(authority name: String, certificate: String, key: String) throws {
        try folder.write("\(name).pem", TextFile.bytes(certificate))
        try folder.write("\(name).key", TextFile.bytes(key))
    }

    /// Every request and failed handshake so far.
    package var log: [ESTLogEntry] {
        TextFile.lines(folder.file("requests")).compactMap {
            try? JSONDecoder().decode(ESTLogEntry.self, from: Data($0.utf8))
        }
    }

    /// The requests for one operation so far.
    package func requests(_ operation: String) -> [ESTLogEntry] { log.filter { $0.operation == operation } }

    package func stop() { process.stop() }
}
