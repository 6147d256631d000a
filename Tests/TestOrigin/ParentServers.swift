// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Squid as a parent proxy, which demands a scheme.
package final class SquidParent: Sendable {
    package enum Scheme: Sendable {
        case none
        case basic
        case digest
        /// Verified by pyspnego.
        case ntlm
        case negotiate(KerberosRealm)
    }

    package static let user = "jdoe"
    package static let password = "kanarie-parent-5d2a"

    package let port: Int
    package let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ scheme: Scheme) throws {
        let folder = try TemporaryFolder("squid")
        self.folder = folder
        // Squid gives up the rights of root.
        chmod(folder.path, 0o777)
        try folder.write("hosts", "127.0.0.1 localhost parent.test.localhost other.test.localhost\n")
        let (lines, environment) = try Self.authentication(scheme, folder)
        let access =
            if case .none = scheme {
                "http_access allow all"
            } else {
                "acl users proxy_auth REQUIRED\nhttp_access allow users"
            }
        let started = try ConfiguredServer.start(
            template: "squid.conf",
            [
                "FOLDER": folder.path, "AUTHENTICATION": lines, "ACCESS": access,
                "USER": getuid() == 0 ? "proxy" : NSUserName(),
            ],
            ports: ["PORT"], in: folder
        ) { conf in
            try ChildProcess(
                try Tool.path("squid"), ["-N", "-f", conf], environment: environment, capture: folder.file("squid"))
        }
        process = started.process
        port = started.ports[0]
    }

    private static func authentication(
        _ scheme: Scheme, _ folder: TemporaryFolder
    ) throws -> (lines: String, environment: [String: String]) {
        let helpers = "/usr/lib/squid"
        switch scheme {
        case .none: return ("", [:])
        case .basic:
            let file = folder.file("users")
            let made = try Command.run(try Tool.path("htpasswd"), ["-bc", file, user, password], in: folder)
            guard made.status == 0 else { throw HarnessError("htpasswd: \(made.said)") }
            return ("auth_param basic program \(helpers)/basic_ncsa_auth \(file)\nauth_param basic realm corp", [:])
        case .digest:
            let file = try folder.write("digests", "\(user):\(password)\n")
            return ("auth_param digest program \(helpers)/digest_file_auth \(file)\nauth_param digest realm corp", [:])
        case .ntlm:
            let file = try folder.write("users", "ACME:\(user):\(password)\n")
            chmod(file, 0o644)
            // Squid starts a helper under its last name alone, by which Python would not find its environment.
            let program = try folder.write(
                program: "ntlm-helper",
                "#!/bin/sh\nexec '\(try Tool.python())' '\(Tool.server("ntlm_helper.py"))' '\(file)'\n")
            return ("auth_param ntlm program \(program)\nauth_param ntlm keep_alive on", [:])
        case .negotiate(let realm):
            chmod(realm.keytab, 0o644)
            return (
                "auth_param negotiate program \(helpers)/negotiate_kerberos_auth -s HTTP/parent.test.localhost "
                    + "-k \(realm.keytab)\nauth_param negotiate keep_alive on",
                realm.environment(cache: "none")
            )
        }
    }

    /// The lines of its log with this method: status, method, target and user.
    package func logged(_ method: String) -> [String] {
        TextFile.lines(folder.file("access.log")).compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 7, words[5] == method else { return nil }
            return "\(words[3].split(separator: "/").last ?? "") \(words[6]) \(words[7])"
        }
    }

    package func stop() { process.stop() }
}

/// microsocks: SOCKS 5 with a user name and password, or without.
package final class SOCKSParent: Sendable {
    package let port: Int
    private let process: ChildProcess

    package init(demandsPassword: Bool, in folder: TemporaryFolder) throws {
        let credentials = demandsPassword ? ["-u", SquidParent.user, "-P", SquidParent.password] : []
        for _ in 0..<3 {
            let port = try Loopback.freePorts(1)[0]
            let process = try ChildProcess(
                try Tool.path("microsocks"), ["-i", "127.0.0.1", "-p", "\(port)"] + credentials,
                capture: folder.file("microsocks"))
            if poll(seconds: 30, { Loopback.answers(port: port) ? true : nil }) == true {
                self.port = port
                self.process = process
                return
            }
            process.stop()
        }
        throw HarnessError("microsocks did not start")
    }
}
