// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The endpoints of GitHub Apps and of service accounts; Servers/machine_grants.py says whom they know.
package final class MachineProvider: Sendable {
    package let port: Int
    /// The private key in PEM of the app and of the account. The openssl command has made it.
    package let key: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// `lifetime` is that of the tokens, in seconds.
    package init(lifetime: Int = 3600) throws {
        folder = try TemporaryFolder("machines")
        key = folder.file("key.pem")
        let openssl = try Tool.path("openssl")
        let make = ["genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key]
        for arguments in [make, ["pkey", "-in", key, "-pubout", "-out", folder.file("public.pem")]] {
            let done = try Command.run(openssl, arguments, in: folder)
            guard done.status == 0 else { throw HarnessError(done.said) }
        }
        process = try ChildProcess(
            try Tool.python(), [Tool.server("machine_grants.py"), folder.file("public.pem"), "\(lifetime)"],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var origin: String { "http://127.0.0.1:\(port)" }

    /// The profile of the app's installation. `more` are members, each with a comma before it.
    package func app(installation: Int = 42, client: String = "app-1", _ more: String = "") -> String {
        """
        {"name": "app", "grant_type": "github_app_installation", "client_id": "\(client)",
        "token_endpoint": "\(origin)/app/installations/\(installation)/access_tokens"\(more)}
        """
    }

    /// The profile of the service account.
    package func account(key: String = "key-1") -> String {
        """
        {"name": "account", "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "scopes": ["api"],
        "token_endpoint": "\(origin)/token", "assertion_issuer": "robot", "assertion_key_id": "\(key)"}
        """
    }

    /// Such as `/token 200`.
    package var requests: [String] {
        TextFile.lines(process.outputPath).filter { $0.hasPrefix("/") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
