// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Lines of the list for some clients: `for=`.
@Suite(.waiting) struct ClientRuleTests {
    /// A user who has listed a site with this `for=`, and two programs: curl, and a copy of it in another place.
    private struct Bench {
        let origin: ChallengingOrigin
        let user: Countersign
        let proxy: RunningProxy
        let copy: String

        var site: String { "https://named.test.localhost:\(origin.port)" }

        init(_ options: String, lines: (_ site: String, _ copy: String) -> [String] = { _, _ in [] }) throws {
            origin = try ChallengingOrigin.acme(.basic)
            user = try Countersign()
            try user.enroll()
            try user.allow("https://named.test.localhost:\(origin.port) answer=basic \(options)")
            copy = user.folder.file("curl")
            try FileManager.default.copyItem(atPath: try Tool.path("curl"), toPath: copy)
            for line in lines("https://named.test.localhost:\(origin.port)", copy) { try user.allow(line) }
            proxy = try user.serve()
        }

        /// The status for a program that trusts the proxy.
        func status(of program: String) throws -> String {
            try Command.run(
                program,
                [
                    "-q", "-sS", "-o", user.folder.file("answer"), "-w", "%{http_code}", "-x", proxy.url, "--cacert",
                    try user.exportedAnchor(), "\(site)/echo",
                ], in: user.folder
            ).output
        }

        /// The status for a program that trusts the site itself and not the proxy. 000 if it gets no tunnel.
        func statusInTunnel(_ program: String) throws -> String {
            try Command.run(
                program,
                [
                    "-q", "-sS", "-o", user.folder.file("answer"), "-w", "%{http_code}", "-x", proxy.url, "--cacert",
                    TestPKI.shared.originAnchor, "\(site)/echo",
                ], in: user.folder
            ).output
        }
    }

    @Test func theLineIsForTheProgramThatItNames() throws {
        let curl = try #require(realpath(try Tool.path("curl"), nil).map { String(cString: $0) })
        let bench = try Bench("for=exe:\(curl)")
        #expect(try bench.proxy.get("\(bench.site)/echo").status == 200)
        // The same program from another file is another client: its tunnel is not looked into.
        #expect(try bench.statusInTunnel(bench.copy) == "401")
        #expect(try bench.statusInTunnel(curl) == "000")
    }

    /// Each program gets the credential of its own line.
    @Test func eachProgramGetsItsOwnLine() throws {
        let curl = try #require(realpath(try Tool.path("curl"), nil).map { String(cString: $0) })
        let bench = try Bench("for=exe:\(curl)") { site, copy in
            [
                "\(site) answer=basic credential=missing for=exe:\(copy)",
                "credential:enrollment for=user:\(NSUserName())",
            ]
        }
        #expect(try bench.proxy.get("\(bench.site)/echo").status == 200)
        let seen = try bench.status(of: bench.copy)
        #expect(seen == "401")
        let reason = try bench.proxy.logged(site: bench.site, atLeast: 2).last?.reason
        #expect(reason == "no credential \"missing\" is enrolled")
        #expect(try bench.proxy.get("\(bench.site)/echo").status == 200)
    }

    /// The line that permits a credential to others only is as good as a `for=` of the site.
    @Test func aCredentialMayBeForSomeProgramsOnly() throws {
        let bench = try Bench("") { _, copy in ["credential:enrollment for=exe:\(copy)"] }
        #expect(try bench.statusInTunnel(try Tool.path("curl")) == "401")
        #expect(try bench.status(of: bench.copy) == "200")
    }

    @Test func clientsShowsWhoIsConnected() throws {
        let bench = try Bench("for=user:\(NSUserName())")
        let connection = try RawConnection(port: bench.proxy.port)
        defer { withExtendedLifetime(connection) {} }
        struct Client: Decodable {
            let pid: Int32?
            let words: [String]
            let connections: Int
        }
        let listed = try JSONDecoder().decode(
            [Client].self, from: Data(bench.user.succeed("clients", "--json").utf8))
        let own = try #require(listed.first { $0.pid == getpid() }, "\(listed)")
        #expect(own.words.first == "user:\(NSUserName())" && own.words.contains { $0.hasPrefix("exe:/") })
        #expect(own.connections == 1)
        let text = try bench.user.succeed("clients")
        #expect(text.contains("PID") && text.contains("\(getpid())"), "\(text)")
    }

    @Test func anExcludedProgramIsRefusedWithTheReason() throws {
        let bench = try Bench("for=user:\(NSUserName()),!exe:/usr/bin/env deny=yes")
        #expect(try bench.proxy.get("\(bench.site)/echo").status == 200)
        let other = try Bench("for=!user:\(NSUserName()) deny=yes")
        #expect(try other.statusInTunnel(other.copy) == "000")
        let log = try other.proxy.logged(site: other.site)
        #expect(log.last?.status == 403 && log.last?.reason?.contains("excludes the client") == true, "\(log)")
    }
}
