// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The compliance service of an organisation; Servers/compliance_service.py lists what `control` may contain.
package final class ComplianceServer: Sendable {
    package let port: Int
    /// The file that it creates when the device complies: the provider's `policy`.
    package let policy: String
    private let log: String
    private let isTLS: Bool
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ control: [String: any Sendable] = [:], isTLS: Bool = false) throws {
        folder = try TemporaryFolder("compliance")
        log = folder.file("requests")
        policy = folder.file("applied")
        self.isTLS = isTLS
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("compliance_service.py"), try Self.json(control), log, policy]
                + (isTLS ? [pki.certificate("server"), pki.key("server")] : []),
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var origin: String { isTLS ? "https://compliance.test.localhost:\(port)" : "http://127.0.0.1:\(port)" }

    package var url: String { origin + "/compliance" }

    /// Changes the service's behaviour from the next request on.
    package func change(_ control: [String: any Sendable]) throws {
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-k", "--noproxy", "*", "--resolve", "compliance.test.localhost:\(port):127.0.0.1",
                "--data-binary", try Self.json(control), origin + "/control",
            ], in: folder)
        guard done.status == 0 else { throw HarnessError("the service did not change: \(done.said)") }
    }

    /// A request that the service has received.
    package struct Request: Decodable, Sendable {
        /// `remediate`, `status`, `page`, or `challenge` for a page without the password that it requires.
        package let action: String
        package let language: String?
        package let token: Bool?
        package let silent: Bool?
        package let account: String?
        package let user: String?
    }

    package var requests: [Request] {
        TextFile.lines(log).compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    private static func json(_ control: [String: any Sendable]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: control), as: UTF8.self)
    }
}

extension [String] {
    /// These actions without the questions about the status before the last one: the client sends them as long as a
    /// page is open, and a busy machine opens it slowly.
    package var withoutPolls: [String] {
        enumerated().filter { $0.element != "status" || $0.offset == count - 1 }.map(\.element)
    }
}
