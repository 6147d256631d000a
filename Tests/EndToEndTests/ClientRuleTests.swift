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

        init(_ options: String) throws {
            origin = try ChallengingOrigin.acme(.basic)
            user = try Countersign()
            try user.enroll()
            try user.allow("https://named.test.localhost:\(origin.port) answer=basic \(options)")
            proxy = try user.serve()
            copy = user.folder.file("curl")
            try FileManager.default.copyItem(atPath: try Tool.path("curl"), toPath: copy)
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

    @Test func anExcludedProgramIsRefusedWithTheReason() throws {
        let bench = try Bench("for=user:\(NSUserName()),!exe:/usr/bin/env deny=yes")
        #expect(try bench.proxy.get("\(bench.site)/echo").status == 200)
        let other = try Bench("for=!user:\(NSUserName()) deny=yes")
        #expect(try other.statusInTunnel(other.copy) == "000")
        let log = try other.proxy.logged(site: other.site)
        #expect(log.last?.status == 403 && log.last?.reason?.contains("for=") == true, "\(log)")
    }
}
