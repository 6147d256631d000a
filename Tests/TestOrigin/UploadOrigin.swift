// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An origin, and parent proxies, that compare uploads with the sent content; Servers/upload_origin.py describes them.
package final class UploadOrigin: Sendable {
    package enum Behaviour: String, CaseIterable, Sendable {
        case invites, ignores, slow, early, challenges

        /// The content is there before the challenge is sent.
        package var takesContentFirst: Bool {
            switch self {
            case .invites, .ignores, .slow: true
            case .early, .challenges: false
            }
        }
    }

    /// A request that the origin has received, or something else.
    package struct Entry: Decodable, Sendable {
        package let id: String?
        package let status: Int?
        /// The content received so far is that of the upload.
        package let equal: Bool?
        /// All of it was received.
        package let whole: Bool?
        /// A request without content that opens a dialogue.
        package let opens: Bool?
        /// Bytes that belong to no request of the test.
        package let extra: String?
    }

    private let folder: TemporaryFolder
    private let process: ChildProcess
    private let ports: [Int]

    /// `parents` are the schemes of the parents. With a realm, the origin accepts its tickets instead of the password
    /// of `user` in the domain ACME.
    package init(
        user: String, password: String, token: String, parents: [String] = [], realm: KerberosRealm? = nil
    ) throws {
        folder = try TemporaryFolder("upload-origin")
        let pki = try TestPKI.shared
        let users = try realm == nil ? folder.write("users", "ACME:\(user):\(password)\n") : "-"
        process = try ChildProcess(
            realm == nil ? try Tool.python() : try Tool.path("python3"),
            [
                Tool.server("upload_origin.py"), folder.file("requests"), pki.certificate("server"),
                pki.key("server"), users, token,
            ] + parents, environment: realm?.serverEnvironment ?? [:], capture: folder.file("server"))
        ports = try process.line(after: "listening ").split(separator: " ").compactMap { Int($0) }
    }

    package func parent(_ number: Int) -> Int { ports[2 + number] }

    package func base(_ scheme: String, _ behaviour: Behaviour, isTLS: Bool) -> String {
        "\(isTLS ? "https" : "http")://\(scheme)-\(behaviour.rawValue).test.localhost:\(ports[isTLS ? 1 : 0])"
    }

    /// A site that only a parent knows.
    package static func base(behind behaviour: Behaviour) -> String {
        "http://parent-\(behaviour.rawValue).upload.example"
    }

    package func entries() throws -> [Entry] {
        try TextFile.lines(folder.file("requests")).map { try JSONDecoder().decode(Entry.self, from: Data($0.utf8)) }
    }

    package var errors: String { process.errorOutput }
}
