// SPDX-License-Identifier: Apache-2.0

import TestOrigin
import Testing

/// `openssl s_server -www` tells of each connection whether its TLS session was one of an earlier one.
@Suite struct SessionTests {
    private final class Origin {
        let port: Int
        private let folder: TemporaryFolder
        private let process: ChildProcess

        init(_ arguments: [String]) throws {
            let pki = try TestPKI.shared
            folder = try TemporaryFolder("session")
            let own = ["s_server", "-accept", "127.0.0.1:0", "-www"]
            process = try ChildProcess(
                "/usr/bin/openssl",
                own + ["-cert", pki.certificate("server"), "-key", pki.key("server")] + arguments,
                capture: folder.file("server"))
            port = try #require(Int(try process.line(after: "ACCEPT 127.0.0.1:")))
        }

        deinit { process.stop() }
    }

    /// Whether the second connection goes on with the session of the first, and the third with that of the second.
    private func resumed(_ proxy: RunningProxy, _ url: String) throws -> [Bool] {
        try (0..<3).map { _ in
            let seen = try proxy.get("\(url)/")
            #expect(seen.status == 200, "\(seen.said)")
            return seen.text.contains("\nReused, TLSv1.")
        }
    }

    /// Each event loop keeps its own sessions.
    private func serve(_ user: Countersign) throws -> RunningProxy { try user.serve("--threads", "1") }

    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func anotherConnectionGoesOnWithTheSessionOfTheOneBefore(version: String) throws {
        let origin = try Origin([version])
        let user = try Countersign()
        let url = "https://again.test.localhost:\(origin.port)"
        try user.allow(url)
        #expect(try resumed(serve(user), url) == [false, true, true])
    }

    /// A site of the list that has another name is another site, on the same server too.
    @Test func anotherSiteHasASessionOfItsOwn() throws {
        let origin = try Origin([])
        let user = try Countersign()
        let sites = ["one", "two"].map { "https://\($0).test.localhost:\(origin.port)" }
        for site in sites { try user.allow(site) }
        let proxy = try serve(user)
        for site in sites { #expect(try resumed(proxy, site) == [false, true, true]) }
    }

    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func whereTheOriginAsksForACertificateEachConnectionIsNew(version: String) throws {
        let origin = try Origin([version, "-verify", "1", "-CAfile", try TestPKI.shared.certificate("client-ca-a")])
        let user = try Countersign()
        let url = "https://asks.test.localhost:\(origin.port)"
        try user.allow(url)
        #expect(try resumed(serve(user), url) == [false, false, false])
        // Anonymous before, a person now.
        try user.importIdentity("laptop")
        let proxy = try serve(user)
        #expect(try resumed(proxy, url) == [false, false, false])
        #expect(try proxy.get("\(url)/").text.contains("\nClient certificate\n"))
    }

    @Test func aNewCredentialBeginsWithANewSession() throws {
        let origin = try Origin([])
        let user = try Countersign()
        let url = "https://credential.test.localhost:\(origin.port)"
        try user.allow(url)
        try user.enroll()
        let proxy = try serve(user)
        #expect(try resumed(proxy, url) == [false, true, true])
        try user.enroll("somebody", password: "other")
        let isNew = try poll(seconds: 20) { () -> Bool? in
            try proxy.get("\(url)/").text.contains("\nReused, TLSv1.") ? nil : true
        }
        #expect(isNew == true)
    }
}
