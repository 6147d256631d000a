// SPDX-License-Identifier: Apache-2.0

import Foundation

/// nanoidp as the provider, and Debian's Apache with mod_auth_openidc as a site that wants its access tokens. Neither
/// has code of ours.
package final class NanoProvider: Sendable {
    package let issuer: String
    /// `/api/` wants an access token.
    package let site: String
    /// The requests to the site, with their tokens.
    package let log: RequestLog
    private let providerLog: String
    private let folder: TemporaryFolder
    private let provider: ChildProcess
    private let apache: ChildProcess

    package static let user = "jdoe"
    package static let password = "kanarie-nano-51"
    package static let client = "countersign"

    package init() throws {
        folder = try TemporaryFolder("nanoidp")
        let pki = try TestPKI.shared
        let secret = "resource-secret"
        let folder = folder
        let python = try Tool.python()
        let backend = try ConfiguredServer.start(
            template: "nanoidp.yaml", ["SECRET": secret, "FOLDER": folder.path], ports: ["BACKEND"], in: folder
        ) { settings in
            try folder.write("config/settings.yaml", TextFile.text(settings))
            try folder.write(
                "config/users.yaml",
                """
                config_version: 1
                users:
                  \(Self.user): {password: "\(Self.password)", email: "jdoe@acme.example", roles: ["USER"]}

                """)
            return try ChildProcess(
                python, ["-m", "nanoidp", "--config", folder.file("config"), "--strict-config"], folder: folder.path,
                capture: folder.file("provider"))
        }
        provider = backend.process
        try folder.write("www/api/index.html", "for the person of the token\n")
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate("server"), "KEY": pki.key("server"),
            "CA": pki.originAnchor, "MODULES": "/usr/lib/apache2/modules", "SECRET": secret,
            "USER": getuid() == 0 ? "User www-data\nGroup www-data" : "", "BACKEND": String(backend.ports[0]),
        ]
        let program = try Tool.path("apache2")
        let front = try ConfiguredServer.start(
            template: "apache-oidc.conf", values, ports: ["SITE", "PROVIDER"], in: folder
        ) { conf in
            try ChildProcess(program, ["-X", "-f", conf], capture: folder.file("apache"))
        }
        apache = front.process
        site = "https://api.test.localhost:\(front.ports[0])"
        issuer = "https://provider.test.localhost:\(front.ports[1])"
        log = RequestLog(path: folder.file("access.log"))
        providerLog = folder.file("provider.log")
    }

    /// The requests to the provider so far, such as `POST /token 200`.
    package var requests: [String] { TextFile.lines(providerLog) }

    /// The provider's output, for messages.
    package var said: String { provider.output + provider.errorOutput + folder.text("error.log") }

    /// Posts a form to the provider; returns the response's body.
    @discardableResult
    package func post(_ path: String, _ form: [String: String]) throws -> String {
        let fields = form.flatMap { ["--data-urlencode", "\($0.key)=\($0.value)"] }
        let done = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "--fail-with-body", "--noproxy", "*", "--cacert", try TestPKI.shared.originAnchor,
                issuer + path,
            ] + fields, in: folder)
        guard done.status == 0 else { throw HarnessError("\(path): \(done.said)") }
        return done.output
    }
}
