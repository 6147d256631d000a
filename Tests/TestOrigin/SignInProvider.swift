// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An OAuth 2.0 and OpenID Connect provider; Servers/provider.py lists what `control` may contain.
package final class SignInProvider: Sendable {
    package let port: Int
    /// The file with one JSON object for each request.
    package let log: String
    private let isTLS: Bool
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ control: [String: any Sendable] = [:], isTLS: Bool = false) throws {
        folder = try TemporaryFolder("provider")
        log = folder.file("requests")
        self.isTLS = isTLS
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("provider.py"), try Self.json(control), log]
                + (isTLS ? [pki.certificate("server"), pki.key("server")] : []),
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package static let client = "countersign-tests"

    package var issuer: String { isTLS ? "https://provider.test.localhost:\(port)" : "http://127.0.0.1:\(port)" }

    /// A profile as the provider's organisation would hand it out.
    package func profile(_ own: [String: any Sendable] = [:]) throws -> String {
        let usual: [String: any Sendable] = [
            "issuer": issuer, "client_id": Self.client, "scopes": ["openid", "offline_access"],
        ]
        return try Self.json(usual.merging(own) { _, new in new })
    }

    /// Changes the provider's behaviour from the next request on.
    package func change(_ control: [String: any Sendable]) throws {
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-k", "--noproxy", "*", "--resolve", "provider.test.localhost:\(port):127.0.0.1",
                "--data-binary", try Self.json(control), "\(issuer)/control",
            ], in: folder)
        guard done.status == 0 else { throw HarnessError("the provider did not change: \(done.said)") }
    }

    /// The requests so far, such as `POST /token refresh_token 200`.
    package var requests: [String] {
        TextFile.lines(log).compactMap { line in
            guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
                return nil
            }
            let words = ["method", "path", "grant", "hint", "status"].compactMap { entry[$0] }
                .filter { !($0 is NSNull) }
            return words.map { "\($0)" }.joined(separator: " ")
        }
    }

    /// How the clients of the requests to endpoints have proved who they are: "none", "basic", "post" or "refused".
    package var clients: [String] {
        TextFile.lines(log).compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["client"] as? String
        }
    }

    /// The `claims` and `client_info` of the token requests so far.
    package var tokenParameters: [(claims: String?, clientInfo: String?)] {
        TextFile.lines(log).compactMap { line in
            guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                entry["path"] as? String == "/token"
            else { return nil }
            return (entry["claims"] as? String, entry["client_info"] as? String)
        }
    }

    /// The numbers of the token responses with which the revoked tokens were issued; nil for a token that never was.
    package var revokedResponses: [Int?] {
        TextFile.lines(log).compactMap { line in
            guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                entry["path"] as? String == "/revoke"
            else { return nil }
            return .some(entry["response"] as? Int)
        }
    }

    /// Whether the last request with each query had a session; by the names in the query.
    package var sessions: [String: Bool] {
        var found: [String: Bool] = [:]
        for line in TextFile.lines(log) {
            guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let query = entry["query"] as? [String], let session = entry["session"] as? Bool
            else { continue }
            found[query.joined(separator: "&")] = session
        }
        return found
    }

    private static func json(_ value: [String: any Sendable]) throws -> String {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
    }
}
