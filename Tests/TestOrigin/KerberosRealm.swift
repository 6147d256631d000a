// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A realm with MIT's KDC on loopback. Everything is in a temporary folder, so the machine's krb5.conf is not used.
package final class KerberosRealm: Sendable {
    package static let name = "CORP.TEST"
    package static let user = "jdoe"
    /// Has the same password, and a keytab.
    package static let robot = "robot"
    package static let password = "kanarie-kdc-51c7"

    package let port: Int
    package let folder: TemporaryFolder
    /// The keys of all services.
    package let keytab: String
    private let process: Mutex<ChildProcess>

    /// - Parameters:
    ///   - services: the services' names, such as `HTTP/www.test.localhost`.
    ///   - settings: lines for `[libdefaults]` of krb5.conf.
    ///   - unkeyed: services whose keys no server has.
    package init(services: [String], unkeyed: [String] = [], settings: [String] = []) throws {
        let folder = try TemporaryFolder("kerberos")
        self.folder = folder
        keytab = folder.file("http.keytab")
        let kdc = try Tool.path("krb5kdc")
        let started = try ConfiguredServer.start(
            template: "kdc.conf", ["FOLDER": folder.path], ports: ["PORT"], in: folder
        ) { conf in
            let port = TextFile.text(conf).split(separator: ":").last?.prefix { $0.isNumber } ?? ""
            try folder.write("krb5.conf", Self.configuration(kdc: "127.0.0.1:\(port)", settings))
            if access(folder.file("principal"), F_OK) != 0 { try Self.makeDatabase(services, unkeyed, in: folder) }
            return try ChildProcess(
                kdc, Self.arguments(in: folder), environment: Self.environment(of: folder),
                capture: folder.file("kdc"))
        }
        process = Mutex(started.process)
        port = started.ports[0]
    }

    package static func configuration(kdc: String, _ settings: [String] = []) -> String {
        """
        [libdefaults]
            default_realm = \(name)
            dns_lookup_kdc = false
            dns_lookup_realm = false
            \(settings.joined(separator: "\n    "))
        [realms]
            \(name) = {
                kdc = \(kdc)
            }
        """
    }

    private static func environment(of folder: TemporaryFolder) -> [String: String] {
        ["KRB5_CONFIG": folder.file("krb5.conf"), "KRB5_KDC_PROFILE": folder.file("kdc.conf")]
    }

    private static func arguments(in folder: TemporaryFolder) -> [String] {
        ["-n", "-r", name, "-P", folder.file("kdc.pid")]
    }

    private static func makeDatabase(_ services: [String], _ unkeyed: [String], in folder: TemporaryFolder) throws {
        func run(_ tool: String, _ arguments: [String]) throws {
            let done = try Command.run(
                try Tool.path(tool), arguments, environment: environment(of: folder), in: folder)
            guard done.status == 0, !done.error.contains("while") else { throw HarnessError("\(tool): \(done.said)") }
        }
        try run("kdb5_util", ["create", "-s", "-W", "-r", name, "-P", "master"])
        try run("kadmin.local", ["-r", name, "-q", "addprinc +requires_preauth -pw \(password) \(user)"])
        try run("kadmin.local", ["-r", name, "-q", "addprinc +requires_preauth -pw \(password) \(robot)"])
        try run("kadmin.local", ["-r", name, "-q", "ktadd -norandkey -k \(folder.file("robot.keytab")) \(robot)"])
        for service in services + unkeyed {
            try run("kadmin.local", ["-r", name, "-q", "addprinc -randkey \(service)"])
        }
        for service in services {
            try run("kadmin.local", ["-r", name, "-q", "ktadd -k \(folder.file("http.keytab")) \(service)"])
        }
        chmod(folder.file("http.keytab"), 0o644)
    }

    package func stop() { process.withLock { $0.stop() } }

    /// Starts the KDC again, with another clock.
    package func restart(at environment: [String: String] = [:]) throws {
        stop()
        let kdc = try ChildProcess(
            try Tool.path("krb5kdc"), Self.arguments(in: folder),
            environment: Self.environment(of: folder).merging(environment) { $1 }, capture: folder.file("kdc-again"))
        process.withLock { $0 = kdc }
        guard poll({ Loopback.answers(port: port) ? true : nil }) == true else {
            throw HarnessError("the KDC did not start again: \(kdc.errorOutput)")
        }
    }

    // MARK: Clients and servers

    /// The environment of a user whose tickets are in the file `cache`.
    package func environment(cache: String) -> [String: String] {
        ["KRB5_CONFIG": folder.file("krb5.conf"), "KRB5CCNAME": "FILE:\(folder.file(cache))"]
    }

    /// The environment of a server with the keytab.
    package var serverEnvironment: [String: String] {
        let replays = folder.file("replays")
        try? FileManager.default.createDirectory(atPath: replays, withIntermediateDirectories: true)
        chmod(replays, 0o777)
        return [
            "KRB5_CONFIG": folder.file("krb5.conf"), "KRB5_KTNAME": keytab,
            "KRB5RCACHENAME": "dfl:", "KRB5RCACHEDIR": replays,
        ]
    }

    /// Obtains a ticket for the user.
    package func kinit(cache: String, lifetime: String? = nil, environment: [String: String] = [:]) throws {
        let done = try Command.run(
            try Tool.path("kinit"), (lifetime.map { ["-l", $0] } ?? []) + [Self.user],
            environment: self.environment(cache: cache).merging(environment) { $1 }, input: Self.password + "\n",
            in: folder)
        guard done.status == 0 else { throw HarnessError("kinit: \(done.said)") }
    }

    /// Limits the life of the user's tickets.
    package func limitTickets(toSeconds seconds: Int) throws {
        let done = try Command.run(
            try Tool.path("kadmin.local"),
            ["-r", Self.name, "-q", "modprinc -maxlife \"\(seconds) seconds\" \(Self.user)"],
            environment: Self.environment(of: folder), in: folder)
        guard done.status == 0, !done.error.contains("while") else { throw HarnessError("kadmin: \(done.said)") }
    }

    /// Gives `principal` new keys, which no keytab has.
    package func replaceKeys(of principal: String) throws {
        let done = try Command.run(
            try Tool.path("kadmin.local"), ["-r", Self.name, "-q", "cpw -randkey \(principal)"],
            environment: Self.environment(of: folder), in: folder)
        guard done.status == 0, !done.error.contains("while") else { throw HarnessError("kadmin: \(done.said)") }
    }

    /// The keytab of ``robot``.
    package var robotKeytab: String { folder.file("robot.keytab") }

    /// The KDC's log of log-ons with `outcome`: `ISSUE`, or `PREAUTH_FAILED` after a wrong password.
    package func logOns(_ outcome: String) -> [String] {
        folder.text("kdc.log").split(separator: "\n").map(String.init).filter {
            $0.contains("AS_REQ") && $0.contains(": \(outcome):")
        }
    }

    /// The KDC's log of requests for tickets of `service`, one line each.
    package func requests(for service: String) -> [String] {
        folder.text("kdc.log").split(separator: "\n").map(String.init).filter {
            $0.contains("TGS_REQ") && $0.contains("for \(service)@")
        }
    }
}

/// Apache with mod_auth_gssapi at https://www.test.localhost: `/kerberos` requires a token with each request,
/// `/connection` one for each connection. `/request` and `/persistent` do the same, and say so in `Persistent-Auth`.
/// `/kerberos/git` is `git http-backend`.
package final class ApacheKerberosOrigin: Sendable {
    package let httpsPort: Int
    package let log: RequestLog
    package let root: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ realm: KerberosRealm, protocols: String = "http/1.1") throws {
        folder = try TemporaryFolder("apache-kerberos")
        root = folder.file("www")
        for path in ["open", "kerberos/index", "connection/index", "persistent/index", "request/index"] {
            try folder.write("www/\(path)", "apache \(path)\n")
        }
        let pki = try TestPKI.shared
        let apache = try Tool.path("apache2")
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate("server"), "KEY": pki.key("server"),
            "MODULES": "/usr/lib/apache2/modules", "KEYTAB": realm.keytab,
            "PROTOCOLS": protocols,
            "USER": getuid() == 0 ? "User www-data\nGroup www-data" : "",
        ]
        let folder = folder
        let environment = realm.serverEnvironment
        let started = try ConfiguredServer.start(
            template: "apache-kerberos.conf", values, ports: ["HTTPS"], in: folder
        ) { conf in
            try ChildProcess(
                apache, ["-X", "-f", conf], environment: environment, capture: folder.file("server"))
        }
        process = started.process
        httpsPort = started.ports[0]
        log = RequestLog(path: folder.file("access.log"))
    }

    package var url: String { "https://www.test.localhost:\(httpsPort)" }

    package var errors: String { folder.text("error.log") }
}

/// An acceptor that demands channel bindings; Servers/kerberos_origin.py lists what `control` may contain.
package final class BindingKerberosOrigin: Sendable {
    package let port: Int
    package let log: RequestLog
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ realm: KerberosRealm, _ control: [String: any Sendable] = [:]) throws {
        folder = try TemporaryFolder("kerberos-origin")
        log = RequestLog(path: folder.file("requests"))
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.path("python3"),
            [
                Tool.server("kerberos_origin.py"),
                String(decoding: try JSONSerialization.data(withJSONObject: control), as: UTF8.self), log.path,
                pki.certificate("server"), pki.key("server"),
            ], environment: realm.serverEnvironment, capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "https://www.test.localhost:\(port)" }
}
