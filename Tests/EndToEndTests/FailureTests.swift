// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Origins that are down, slow or broken: the client receives an error with a reason in time.
@Suite(.waiting) struct FailureTests {
    /// A proxy with an origin timeout of two seconds.
    private func proxy(allowing url: String?) throws -> RunningProxy {
        let user = try Countersign()
        try user.enroll()
        if let url { try user.allow(url) }
        return try user.serve("--origin-timeout", "2")
    }

    /// The status of the CONNECT or of the request, depending on which the proxy answered.
    private func outcome(_ proxy: RunningProxy, _ url: String) throws -> (status: Int, said: String) {
        let seen = try proxy.get(url, flags: ["-w", "%{http_connect} %{http_code}", "-v"])
        let codes =
            seen.said.split(separator: "\n").dropFirst().first?.split(separator: " ").compactMap { Int($0) } ?? []
        return (codes.first { $0 >= 400 } ?? 0, seen.said)
    }

    @Test(arguments: [
        ("silent", 504), ("close", 502), ("plain", 502), ("tls-silent", 504), ("tls-close", 502),
        ("tls-cut-head", 502), ("tls-garbage", 502),
    ])
    func brokenOriginIsAGatewayError(_ mode: String, _ status: Int) throws {
        let origin = try MisbehavingOrigin(mode)
        let url = "https://broken.test.localhost:\(origin.port)"
        let proxy = try proxy(allowing: url)
        let seen = try outcome(proxy, "\(url)/")
        #expect(seen.status == status, "\(seen.said)")
        #expect(seen.said.lowercased().contains("< proxy-status: countersign; error="), "\(seen.said)")
    }

    @Test(arguments: [("silent", 504), ("close", 502)])
    func brokenOriginOverHTTPIsAGatewayError(_ mode: String, _ status: Int) throws {
        let origin = try MisbehavingOrigin(mode)
        let seen = try outcome(try proxy(allowing: nil), "http://broken.test.localhost:\(origin.port)/")
        #expect(seen.status == status, "\(seen.said)")
    }

    @Test(arguments: ["https", "http"], [true, false])
    func unreachableOriginIsABadGateway(_ scheme: String, isListed: Bool) throws {
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        let url = "\(scheme)://down.test.localhost:\(port.number)"
        let seen = try outcome(try proxy(allowing: isListed ? url : nil), "\(url)/")
        #expect(seen.status == 502, "\(seen.said)")
        #expect(seen.said.lowercased().contains("proxy-status: countersign; error="), "\(seen.said)")
    }

    @Test func unknownHostIsABadGateway() throws {
        let seen = try outcome(try proxy(allowing: nil), "http://does-not-exist.invalid/")
        #expect(seen.status == 502, "\(seen.said)")
    }

    @Test func truncatedResponseStaysTruncated() throws {
        let origin = try MisbehavingOrigin("tls-cut-body")
        let url = "https://cut.test.localhost:\(origin.port)"
        let seen = try proxy(allowing: url).get("\(url)/")
        #expect(seen.exit != 0 || seen.status == 502, "\(seen.said)")
    }

    @Test(arguments: [ChallengingOrigin.Mode.ntlm, .negotiate])
    func originClosingDuringTheExchangeIsNotRetriedForever(_ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode)
        let path = "/fault/close-on-authenticate/x"
        // A site that has accepted the password before is not suspected of rejecting it by silence.
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let seen = try outcome(site.proxy, "\(site.url)\(path)")
        #expect(seen.status == 502 || seen.status == 401, "\(seen.said)")
        let tries = site.origin.log.requests(path: path).filter { $0.auth == "authenticate" }.count
        #expect((1...2).contains(tries), "\(tries) tries")
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
    }

    @Test func originDisappearingIsABadGateway() throws {
        let site = try BodyTests.Site(.basic)
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        site.origin.stop()
        #expect(try outcome(site.proxy, "\(site.url)/echo").status == 502)
    }
}
