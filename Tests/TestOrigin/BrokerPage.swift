// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Microsoft's sign-in page in a network of its own, in which no other name leads anywhere.
package final class BrokerPage: Sendable {
    package static let url = "https://login.microsoftonline.com"
    private let folder: TemporaryFolder
    private let authority: OpenSSLAuthority
    private let process: ChildProcess

    /// A page that shows the broker's header; Servers/broker_page.py.
    package convenience init() throws { try self.init { [Tool.server("broker_page.py"), $0, $1, $2] } }

    /// A provider with this address; Servers/provider.py lists what `control` may contain.
    package convenience init(provider control: [String: any Sendable]) throws {
        let text = String(decoding: try JSONSerialization.data(withJSONObject: control), as: UTF8.self)
        try self.init { [Tool.server("provider.py"), text, $0, $1, $2, "login.microsoftonline.com"] }
    }

    /// `words` gets the paths of the log, the certificate and the key.
    private init(_ words: (String, String, String) -> [String]) throws {
        folder = try TemporaryFolder("broker-page")
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        let usual = OpenSSLAuthority.server.filter { !$0.hasPrefix("subjectAltName") }
        try authority.make("page", of: "root", usual + ["subjectAltName=DNS:login.microsoftonline.com"])
        let hosts = try folder.write("hosts", "127.0.0.1 localhost login.microsoftonline.com\n")
        let server =
            try [Tool.python()]
            + words(folder.file("requests"), authority.path("page.pem"), authority.path("page.key.pem"))
        process = try ChildProcess(
            Tool.path("unshare"),
            Self.namespaces + ["sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\"", hosts] + server,
            capture: folder.file("server"))
        _ = try process.line(after: "listening ")
    }

    private static let namespaces = ["--map-current-user", "--keep-caps", "--mount", "--net"]

    /// Whether this user can have a network of its own.
    package static let isPossible: Bool = {
        guard let folder = try? TemporaryFolder("namespaces"), let unshare = try? Tool.path("unshare") else {
            return false
        }
        return (try? Command.run(unshare, namespaces + ["true"], in: folder).status) == 0
    }()

    /// The paths of the requests to a provider.
    package var requests: [String] {
        TextFile.lines(folder.file("requests")).compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["path"] as? String
        }
    }

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
