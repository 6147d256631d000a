// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Which requests may share a connection.
@Suite(.waiting) struct ConnectionTests {
    @Test(arguments: [ChallengingOrigin.Mode.ntlm, .negotiate])
    func clientConnectionAuthenticatesOnce(_ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode)
        let url = "\(site.url)/echo?[1-20]"
        let seen = try site.proxy.get(url, flags: ["-w", "%{http_code} %{num_connects}\n"])
        #expect(seen.exit == 0, "\(seen.said)")
        let lines = seen.said.split(separator: "\n")
        #expect(lines.filter { $0 == "200 0" }.count == 19 && lines.contains("200 1"), "\(seen.said)")
        let requests = site.origin.log.requests
        #expect(requests.filter { $0.auth == "authenticate" }.count == 1)
        #expect(Set(requests.filter { $0.status == 200 }.map(\.connection)).count == 1)
    }

    @Test(arguments: [ChallengingOrigin.Mode.ntlm, .negotiate])
    func clientConnectionsNeverShareAnAuthenticatedConnection(_ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode)
        for number in 1...10 { #expect(try site.proxy.get("\(site.url)/echo?\(number)").status == 200) }
        let accepted = site.origin.log.requests.filter { $0.status == 200 }
        #expect(accepted.count == 10 && accepted.allSatisfy { $0.auth == "authenticate" })
        #expect(Set(accepted.map(\.connection)).count == 10)
    }

    /// As Mojo::UserAgent sends it.
    @Test func aTunnelMayDeclareThatItHasNoContent() throws {
        let site = try BodyTests.Site(.basic)
        for flags in [["--proxy-header", "Content-Length: 0"], ["--proxy-header", "Content-Length: 1"]] {
            let seen = try site.proxy.get("\(site.url)/echo", flags: flags)
            #expect(seen.status == (flags[1].hasSuffix("0") ? 200 : 0), "\(seen.said)")
        }
    }

    @Test func basicIsPreemptiveInsideAnAcceptedSpace() throws {
        let site = try BodyTests.Site(.basic)
        for number in 1...5 { #expect(try site.proxy.get("\(site.url)/echo?\(number)").status == 200) }
        #expect(site.origin.log.requests.map(\.status) == [401, 200, 200, 200, 200, 200])
    }

    @Test func preemptNoWaitsForEveryChallenge() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll()
        try user.allow("https://wait.test.localhost:\(origin.port) preempt=no")
        let proxy = try user.serve()
        for _ in 1...2 { #expect(try proxy.get("https://wait.test.localhost:\(origin.port)/echo").status == 200) }
        #expect(origin.log.requests.map(\.status) == [401, 200, 401, 200])
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let site = try BodyTests.Site(.basic, isTLS: false)
        let connection = try RawConnection(port: site.proxy.port)
        let host = site.url.dropFirst("http://".count)
        let requests = (1...8).map { "GET \(site.url)/bytes/\($0) HTTP/1.1\r\nHost: \(host)\r\n\r\n" }
        try connection.send(requests.joined())
        let seen = connection.receive { $0.components(separatedBy: "HTTP/1.1 200").count > 8 && $0.count > 800 }
        let lengths = seen.matches(of: /[Cc]ontent-[Ll]ength: (\d+)/).map { Int($0.1) ?? 0 }
        #expect(lengths == Array(1...8), "\(seen)")
    }

    @Test func http10RequestIsAnsweredAndClosed() throws {
        let site = try BodyTests.Site(.basic, isTLS: false)
        let connection = try RawConnection(port: site.proxy.port)
        try connection.send("GET \(site.url)/chunked/100 HTTP/1.0\r\n\r\n")
        let seen = connection.receive()
        #expect(seen.hasPrefix("HTTP/1.1 200") && !seen.lowercased().contains("transfer-encoding: chunked"), "\(seen)")
    }

    @Test func absoluteFormHTTPSRequestIsAnswered() throws {
        let site = try BodyTests.Site(.ntlm)
        let connection = try RawConnection(port: site.proxy.port)
        let host = site.url.dropFirst("https://".count)
        try connection.send("GET \(site.url)/echo HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
        let seen = connection.receive()
        #expect(seen.hasPrefix("HTTP/1.1 200") && seen.contains("\"method\": \"GET\""), "\(seen)")
    }

    /// curl also sends http requests in a CONNECT, with the option for that.
    @Test(arguments: [ChallengingOrigin.Mode.basic, .ntlm])
    func requestsInsideAConnectAreAnswered(_ mode: ChallengingOrigin.Mode) throws {
        let site = try BodyTests.Site(mode, isTLS: false)
        let flags = ["--proxytunnel", "-w", "%{http_code} %{num_connects}\n"]
        let seen = try site.proxy.get("\(site.url)/echo?[1-3]", flags: flags)
        #expect(seen.exit == 0, "\(seen.said)")
        let lines = seen.said.split(separator: "\n")
        #expect(lines.filter { $0 == "200 0" }.count == 2 && lines.contains("200 1"), "\(seen.said)")
        let logged = try site.proxy.logged(site: site.url, atLeast: 4)
        #expect(logged.map(\.method) == ["CONNECT", "GET", "GET", "GET"] && logged.allSatisfy { $0.status == 200 })
        #expect(logged.allSatisfy { $0.decision == "forward" })
    }

    @Test func siteListedForHTTPSIsNotAnsweredOverHTTP() throws {
        let origin = try ChallengingOrigin.acme(.basic, certificate: nil)
        let user = try Countersign()
        try user.enroll()
        try user.allow("https://only.test.localhost:\(origin.port)")
        let seen = try user.serve().get("http://only.test.localhost:\(origin.port)/echo")
        #expect(seen.status == 401 && origin.log.requests.map(\.auth) == [nil], "\(seen.said)")
    }

    @Test func nonTLSBytesInsideAListedConnectAreNotForwarded() throws {
        let site = try BodyTests.Site(.basic)
        let place = site.url.dropFirst("https://".count)
        let connection = try RawConnection(port: site.proxy.port)
        try connection.send("CONNECT \(place) HTTP/1.1\r\nHost: \(place)\r\n\r\n")
        #expect(connection.receive { $0.hasSuffix("\r\n\r\n") }.hasPrefix("HTTP/1.1 200 "))
        try connection.send("GET /echo HTTP/1.1\r\nHost: \(place)\r\n\r\n")
        let seen = connection.receive(seconds: 15)
        #expect(!seen.contains("HTTP/1.1 401") && !seen.contains("HTTP/1.1 200"), "\(seen)")
        #expect(site.origin.log.requests.isEmpty)
    }

    @Test func otherHostInsideAListedConnectIsNotAnswered() throws {
        let site = try BodyTests.Site(.basic)
        let seen = try site.proxy.get("\(site.url)/echo", flags: ["-H", "Host: other.test.localhost"])
        #expect(seen.status == 400, "\(seen.said)")
        #expect(site.origin.log.requests.isEmpty)
    }

    private static let start = "GET http://a.test.localhost/ HTTP/1.1\r\n"
    private static let host = "Host: a.test.localhost\r\n"

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", start + "\r\n", start + host + host + "\r\n",
        start + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        start + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        start + host + "Transfer-Encoding: chunked, identity\r\n\r\n", start + host + "X : y\r\n\r\n",
        "GET http://user:pw@a.test.localhost/ HTTP/1.1\r\n" + host + "\r\n",
        "CONNECT a.test.localhost HTTP/1.1\r\n" + host + "\r\n", "\u{16}\u{3}\u{1}\u{0}\u{5}hello\r\n\r\n",
    ])
    func originFormRequestIsRefused(_ request: String) throws {
        let proxy = try Setting.shared.proxy
        let connection = try RawConnection(port: proxy.port)
        try connection.send(request)
        let seen = connection.receive(seconds: 15)
        #expect(seen.hasPrefix("HTTP/1.1 400 "), "\(seen)")
        #expect(!seen.contains("user:pw") && !seen.contains("hello"), "\(seen)")
    }
}
