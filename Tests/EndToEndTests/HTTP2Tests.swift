// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Clients that use HTTP/2 inside the tunnel to an intercepted site.
@Suite(.waiting) struct HTTP2Tests {
    /// curl writes the version behind the status.
    private static let version = ["-w", "\nversion %{http_version} connects %{num_connects} code %{http_code}"]

    private static func version(_ seen: HTTPClient.Response) -> String? {
        seen.said.components(separatedBy: "version ").last?.split(separator: " ").first.map(String.init)
    }

    // MARK: Which version

    @Test(
        arguments: [
            ("", [], ["--http2"], "2"), ("", [], ["--http1.1"], "1.1"), ("", [], ["--no-alpn"], "1.1"),
            (" http2=no", [], ["--http2"], "1.1"), ("", ["--no-http2"], ["--http2"], "1.1"),
        ] as [(String, [String], [String], String)])
    func theVersionIsTheClientsChoice(option: String, flags: [String], ofCurl: [String], version: String) throws {
        let origin = try ChallengingOrigin.acme(.basic, certificate: "server")
        let user = try Countersign()
        try user.enroll()
        let url = "https://two.test.localhost:\(origin.port)"
        try user.allow("\(url) answer=basic\(option)")
        let proxy = try RunningProxy(user, flags)
        let seen = try proxy.get("\(url)/echo", flags: ofCurl + Self.version)
        #expect(seen.status == 200 && Self.version(seen) == version, "\(seen.said)")
    }

    /// Where it is off, a client that speaks nothing else gets the alert no_application_protocol.
    @Test(arguments: [([], "ALPN protocol: h2"), (["--no-http2"], "no application protocol")] as [([String], String)])
    func aClientMayOfferNothingElse(flags: [String], outcome: String) throws {
        let site = try BodyTests.Site(.basic, flags: flags)
        let done = try Command.run(
            try Tool.path("openssl"),
            [
                "s_client", "-proxy", "127.0.0.1:\(site.proxy.port)", "-connect",
                "body.test.localhost:\(site.origin.port)", "-servername", "body.test.localhost", "-alpn", "h2",
            ], input: "", in: TemporaryFolder())
        #expect(done.said.contains(outcome), "\(done.said)")
    }

    // MARK: Messages

    @Test(arguments: [ChallengingOrigin.Mode.basic, .ntlm, .negotiate])
    func challengesAreAnsweredOnTheStream(_ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode)
        let seen = try site.proxy.get("\(site.url)/echo", flags: ["--http2"] + Self.version)
        #expect(seen.status == 200 && Self.version(seen) == "2", "\(seen.said)")
        #expect(seen.values("WWW-Authenticate").isEmpty && seen.values("Connection").isEmpty, "\(seen.said)")
        #expect(seen.values("Transfer-Encoding").isEmpty, "\(seen.said)")
    }

    @Test func aHeadRequestGetsNoContent() throws {
        let site = try BodyTests.Site(.basic)
        let seen = try site.proxy.send(
            .curl, HTTPClient.Request(method: "HEAD", url: "\(site.url)/echo", flags: ["--http2"]))
        #expect(seen.status == 200 && seen.exit == 0 && seen.values("Content-Length").count == 1, "\(seen.said)")
    }

    /// The client cannot be shown another host on the tunnel's connection.
    @Test func anotherHostIsRefused() throws {
        let site = try BodyTests.Site(.basic)
        let seen = try site.proxy.get("\(site.url)/echo", flags: ["--http2", "-H", "Host: other.test.localhost"])
        #expect(seen.status == 400, "\(seen.said)")
        #expect(site.origin.log.requests.isEmpty)
    }

    // MARK: Many streams

    /// Fifty requests at a time share the client's one connection.
    @Test func manyRequestsShareAConnection() throws {
        let site = try BodyTests.Site(.basic)
        let curl = try Tool.path("curl")
        let arguments = [
            "-q", "-sS", "--http2", "-Z", "--parallel-max", "50", "-x", site.proxy.url, "--cacert", site.proxy.anchor,
            "--max-time", "120", "-o", "/dev/null", "-w", "%{http_code} %{http_version} %{num_connects}\\n",
            "\(site.url)/echo?[1-200]",
        ]
        let done = try Command.run(curl, arguments, in: TemporaryFolder())
        let lines = done.output.split(separator: "\n")
        #expect(lines.count == 200 && lines.allSatisfy { $0.hasPrefix("200 2 ") }, "\(done.said)")
        let connects = lines.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
        #expect(connects < 10, "\(connects) connections")
    }
}
