// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Microsoft's sign-in page in a network of its own, where no other name leads anywhere.
package final class BrokerPage: Sendable {
    package static let url = "https://login.microsoftonline.com"
    private let folder: TemporaryFolder
    private let authority: OpenSSLAuthority
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("broker-page")
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        let usual = OpenSSLAuthority.server.filter { !$0.hasPrefix("subjectAltName") }
        try authority.make("page", of: "root", usual + ["subjectAltName=DNS:login.microsoftonline.com"])
        let hosts = try folder.write("hosts", "127.0.0.1 localhost login.microsoftonline.com\n")
        let server = [
            try Tool.python(), Tool.server("broker_page.py"), folder.file("requests"), authority.path("page.pem"),
            authority.path("page.key.pem"),
        ]
        process = try ChildProcess(
            Tool.path("unshare"),
            Self.namespaces + ["sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\"", hosts] + server,
            capture: folder.file("server"))
        _ = try process.line(after: "listening ", seconds: 60)
    }

    private static let namespaces = ["--map-current-user", "--keep-caps", "--mount", "--net"]

    /// Whether this user can have a network of its own.
    package static let isPossible: Bool = {
        guard let folder = try? TemporaryFolder("namespaces"), let unshare = try? Tool.path("unshare") else {
            return false
        }
        return (try? Command.run(unshare, namespaces + ["true"], in: folder).status) == 0
    }()

    /// The PEM file of the page's root.
    package var anchor: String { authority.path("root.pem") }

    /// The words before a command that is to run in the page's network.
    package var inside: [String] {
        get throws {
            [
                try Tool.path("nsenter"), "--target=\(process.pid)", "--user", "--preserve-credentials", "--mount",
                "--net", "--",
            ]
        }
    }
}
