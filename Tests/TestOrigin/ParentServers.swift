// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Squid as a parent proxy, which demands a scheme.
package final class SquidParent: Sendable {
    package enum Scheme: Sendable {
        case none
        case basic
        case digest
        /// Verified by pyspnego. Answers must be bound to TLS with the certificate in the file, if there is one.
        case ntlm(boundTo: String?)
        /// The same, on another connection than that of the first challenge, which squid closes.
        case ntlmOnAnotherConnection
        /// Verified by Samba.
        case samba
        case negotiate(KerberosRealm)
    }

    package static let user = "jdoe"
    package static let password = "kanarie-parent-5d2a"

    package let port: Int
    package let folder: TemporaryFolder
    private let process: ChildProcess

    /// `opensTunnels` permits CONNECT to all ports; without, there is only 443, as in squid's own settings.
    package init(_ scheme: Scheme, opensTunnels: Bool = true) throws {
        let folder = try TemporaryFolder("squid")
        self.folder = folder
        // Squid gives up the rights of root.
        chmod(folder.path, 0o777)
        try folder.write("hosts", "127.0.0.1 localhost parent.test.localhost other.test.localhost\n")
        let (lines, environment) = try Self.authentication(scheme, folder)
        let ports =
            opensTunnels ? "" : "acl tunnels method CONNECT\nacl secured port 443\nhttp_access deny tunnels !secured\n"
        let access =
            if case .none = scheme {
                "http_access allow all"
            } else {
                "acl users proxy_auth REQUIRED\nhttp_access allow users"
            }
        let started = try ConfiguredServer.start(
            template: "squid.conf",
            [
                "FOLDER": folder.path, "AUTHENTICATION": lines, "ACCESS": ports + access,
                "USER": getuid() == 0 ? "proxy" : NSUserName(),
            ],
            ports: ["PORT"], in: folder
        ) { conf in
            // Its shared memory has the name of the service. Another squid of that name would remove it.
            let service = "test\(UInt64.random(in: 0...UInt64.max))"
            return try ChildProcess(
                try Tool.path("squid"), ["-N", "-n", service, "-f", conf], environment: environment,
                capture: folder.file("squid"))
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
        case .ntlmOnAnotherConnection:
            let (lines, environment) = try authentication(.ntlm(boundTo: nil), folder)
            return (lines.replacingOccurrences(of: "keep_alive on", with: "keep_alive off"), environment)
        case .ntlm(let certificate):
            let file = try folder.write("users", "ACME:\(user):\(password)\n")
            chmod(file, 0o644)
            // Squid starts a helper under its last name alone, by which Python would not find its environment.
            let program = try folder.write(
                program: "ntlm-helper",
                "#!/bin/sh\nexec '\(try Tool.python())' '\(Tool.server("ntlm_helper.py"))' '\(file)' "
                    + "\(certificate.map { "'\($0)'" } ?? "")\n")
            return ("auth_param ntlm program \(program)\nauth_param ntlm keep_alive on", [:])
        case .samba:
            let program = try Tool.path("ntlm_auth")
            return (
                "auth_param ntlm program \(program) --helper-protocol=squid-2.5-ntlmssp --domain=ACME "
                    + "--username=\(user) --password=\(password)\nauth_param ntlm keep_alive on", [:]
            )
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

/// A parent proxy that speaks HTTP/1.0: Servers/old_parent.py.
package final class OldParent: Sendable {
    package enum Scheme: String, Sendable { case basic, ntlm }
    package enum LineEnd: String, Sendable { case crlf, lf }

    package let port: Int
    private let process: ChildProcess
    private let log: String

    package init(_ scheme: Scheme, _ lineEnd: LineEnd, in folder: TemporaryFolder) throws {
        let users = try folder.write("old-users", "ACME:\(SquidParent.user):\(SquidParent.password)\n")
        log = try folder.write("old-log", "")
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("old_parent.py"), users, scheme.rawValue, lineEnd.rawValue, log],
            capture: folder.file("old-parent"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// One `STATUS METHOD CONNECTION` per request so far.
    package var logged: [String] { TextFile.lines(log) }
}

/// A port that passes everything on to another port of this machine, with TLS in front or without.
package final class Front: Sendable {
    package let port: Int
    private let process: ChildProcess

    /// `certificate` is the name of one of ``TestPKI``, nil for no TLS. `port` is nil for one that is free.
    package init(to target: Int, certificate: String?, port: Int? = nil, in folder: TemporaryFolder) throws {
        let pki = try TestPKI.shared
        let tls = certificate.map { ",cert=\(pki.certificate($0)),key=\(pki.key($0)),verify=0" }
        (self.port, process) = try start("socat", on: port, in: folder) { port in
            [
                (tls == nil ? "TCP-LISTEN" : "OPENSSL-LISTEN")
                    + ":\(port),bind=127.0.0.1,reuseaddr,fork,max-children=50\(tls ?? "")",
                "TCP:127.0.0.1:\(target)",
            ]
        }
    }

    /// Accepts no more connections.
    package func stop() { process.stop() }
}

/// Apache as a parent proxy over TLS that demands Basic, with squid behind it.
package final class ApacheParent: Sendable {
    package let port: Int
    private let folder: TemporaryFolder
    private let process: ChildProcess
    private let squid: SquidParent

    package init() throws {
        squid = try SquidParent(.none)
        let folder = try TemporaryFolder("apache-parent")
        self.folder = folder
        let file = folder.file("users")
        let made = try Command.run(
            try Tool.path("htpasswd"), ["-bc", file, SquidParent.user, SquidParent.password], in: folder)
        guard made.status == 0 else { throw HarnessError("htpasswd: \(made.said)") }
        let pki = try TestPKI.shared
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate("server"), "KEY": pki.key("server"),
            "MODULES": "/usr/lib/apache2/modules", "NEXT": String(squid.port),
            "USER": getuid() == 0 ? "User www-data\nGroup www-data" : "",
        ]
        let started = try ConfiguredServer.start(
            template: "apache-parent.conf", values, ports: ["PORT"], in: folder
        ) { conf in
            try ChildProcess(try Tool.path("apache2"), ["-X", "-f", conf], capture: folder.file("server"))
        }
        process = started.process
        port = started.ports[0]
    }

    /// The lines of its log with this method: status, method, target, user and version of TLS.
    package func logged(_ method: String) -> [String] {
        TextFile.lines(folder.file("access.log")).filter { $0.contains(" \(method) ") }
    }
}

/// Starts a server on the given port, by default with three tries to find a free one.
private func start(
    _ program: String, on port: Int? = nil, in folder: TemporaryFolder, _ arguments: (Int) -> [String]
) throws -> (Int, ChildProcess) {
    for _ in 0..<3 {
        let port = try port ?? Loopback.freePorts(1)[0]
        let process = try ChildProcess(try Tool.path(program), arguments(port), capture: folder.file(program))
        let isUp = poll { () -> Bool? in
            if process.exitStatus != nil { return false }
            return Loopback.answers(port: port) ? true : nil
        }
        if isUp == true { return (port, process) }
        process.stop()
    }
    throw HarnessError("\(program) did not start")
}

/// microsocks: SOCKS 5 with a user name and password, or without.
package final class SOCKSParent: Sendable {
    package let port: Int
    private let process: ChildProcess

    package init(demandsPassword: Bool, in folder: TemporaryFolder) throws {
        let credentials = demandsPassword ? ["-u", SquidParent.user, "-P", SquidParent.password] : []
        (port, process) = try start("microsocks", in: folder) { port in
            ["-i", "127.0.0.1", "-p", "\(port)"] + credentials
        }
    }
}
