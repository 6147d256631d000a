// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Debian's Dovecot on a port of the loopback interface, with mail for one person, who has one token.
package final class DovecotServer: Sendable {
    package let port: Int
    private let folder: TemporaryFolder
    private let tokens: ChildProcess
    private let dovecot: ChildProcess

    package init(token: String, user: String) throws {
        folder = try TemporaryFolder("dovecot")
        let folder = folder
        tokens = try ChildProcess(
            try Tool.python(), [Tool.server("tokens.py"), token, user], capture: folder.file("tokens"))
        let place = try tokens.line(after: "listening ")
        try folder.write(
            "oauth2.conf",
            """
            introspection_mode = auth
            introspection_url = http://127.0.0.1:\(place)/
            username_attribute = email
            active_attribute = active
            active_value = true

            """)
        for name in ["run", "mail"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
        let isRoot = getuid() == 0
        // No mail process runs as root.
        let (user, group) = isRoot ? ("www-data", "www-data") : ("\(getuid())", "\(getgid())")
        if isRoot {
            let entry = try Command.run("/bin/chown", ["www-data:www-data", folder.file("mail")], in: folder)
            guard entry.status == 0 else { throw HarnessError(entry.said) }
        }
        let names = isRoot ? "" : try Self.internalNames(in: folder)
        let program = try Tool.path("dovecot")
        let started = try ConfiguredServer.start(
            template: "dovecot.conf",
            ["FOLDER": folder.path, "USER": user, "GROUP": group, "INTERNAL": names], ports: ["PORT"], in: folder
        ) { conf in
            try ChildProcess(program, ["-F", "-c", conf], capture: folder.file("server"))
        }
        (dovecot, port) = (started.process, started.ports[0])
    }

    /// Dovecot's own processes run as the user of the tests.
    private static func internalNames(in folder: TemporaryFolder) throws -> String {
        let user = try Command.run("/usr/bin/id", ["-un"], in: folder).output.filter { !$0.isNewline }
        let group = try Command.run("/usr/bin/id", ["-gn"], in: folder).output.filter { !$0.isNewline }
        return """
            default_internal_user = \(user)
            default_login_user = \(user)
            default_internal_group = \(group)
            """
    }

    /// What Dovecot has logged.
    package var log: String { folder.text("dovecot.log") }
}
