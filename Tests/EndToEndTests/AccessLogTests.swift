// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The contents of the access log.
@Suite struct AccessLogTests {
    @Test func lineRecordsTheClientAndTheDecision() throws {
        let origin = try ChallengingOrigin.acme(.ntlm)
        let nginx = try Origins.shared.nginx
        let user = try Countersign()
        try user.enroll()
        let site = "https://log.test.localhost:\(origin.port)"
        try user.writeSites("# one\n\(site) answer=ntlm domain=ACME\n")
        let proxy = try user.serve()
        #expect(try proxy.get("\(site)/echo").status == 200)
        let answered = try #require(try proxy.logged(site: site, atLeast: 2).last { $0.method == "GET" })
        #expect(answered.decision == "intercept" && answered.rule?.hasSuffix("AllowedSites/test.sites:2") == true)
        #expect(answered.challenge == "ntlm" && answered.credential == "enrollment" && answered.status == 200)
        #expect(answered.uid == UInt64(getuid()) && answered.rounds == 2, "\(answered)")
        #expect(answered.bytes > 0 && answered.time.hasSuffix("Z"))
        let tunnel = "https://unlisted.test.localhost:\(nginx.httpsPort)"
        _ = try proxy.send(.curl, HTTPClient.Request(url: "\(tunnel)/who"), anchors: TestPKI.shared.originAnchor)
        let carried = try #require(try proxy.logged(site: tunnel).last)
        #expect(carried.method == "CONNECT" && carried.decision == "tunnel" && carried.challenge == nil)
        #expect(carried.rule == nil && carried.credential == nil && carried.bytes > 0)
        var information = stat()
        #expect(stat(proxy.accessLog, &information) == 0 && information.st_mode & 0o777 == 0o600)
    }

    @Test func lineRecordsTheClientProcess() throws {
        let port = try Origins.shared.nginx.httpPort
        let proxy = try Countersign().serve()
        let connection = try RawConnection(port: proxy.port)
        let site = "http://unlisted.test.localhost:\(port)"
        // The process is looked up concurrently with the first request, which may finish first.
        let named = try poll(seconds: 10) { () -> Bool? in
            try connection.send("GET \(site)/who HTTP/1.1\r\nHost: unlisted.test.localhost:\(port)\r\n\r\n")
            #expect(connection.receive { $0.hasSuffix("open http\n") }.hasPrefix("HTTP/1.1 200 "))
            return try proxy.logged(site: site).last?.pid == UInt64(getpid()) ? true : nil
        }
        #expect(named == true)
    }

    @Test func lineContainsNoPathFieldValueOrUserName() throws {
        let site = try BodyTests.Site(.basic)
        let flags = ["-H", "X-Mark: field-mark", "-A", "agent-mark", "-d", "body-mark"]
        _ = try site.proxy.get("\(site.url)/echo/path-mark?query-mark", flags: flags)
        _ = try site.proxy.logged(site: site.url, atLeast: 2)
        let text = TextFile.text(site.proxy.accessLog)
        #expect(text.contains("\"method\":\"GET\""))
        for mark in ["path-mark", "query-mark", "field-mark", "agent-mark", "body-mark", Countersign.user] {
            #expect(!text.contains(mark), "\(mark)")
        }
    }
}
