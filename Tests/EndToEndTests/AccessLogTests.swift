// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The contents of the access log.
@Suite(.waiting) struct AccessLogTests {
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
        let named = try poll { () -> Bool? in
            try connection.send("GET \(site)/who HTTP/1.1\r\nHost: unlisted.test.localhost:\(port)\r\n\r\n")
            #expect(connection.receive { $0.hasSuffix("open http\n") }.hasPrefix("HTTP/1.1 200 "))
            return try proxy.logged(site: site).last?.pid == UInt64(getpid()) ? true : nil
        }
        #expect(named == true)
    }

    // MARK: A full disk

    /// Sends plain requests to an unlisted site, one by one. Returns the number of each status.
    private func sendRequests(_ count: Int, through proxy: RunningProxy) throws -> [Int: Int] {
        let port = try Origins.shared.nginx.httpPort
        var statuses: [Int: Int] = [:]
        var connection = try RawConnection(port: proxy.port)
        for _ in 0..<count {
            try connection.send(
                "GET http://unlisted.test.localhost:\(port)/who HTTP/1.1\r\nHost: unlisted.test.localhost:\(port)\r\n\r\n"
            )
            let response = connection.receive { $0.hasSuffix("\n") && $0.contains("\r\n\r\n") }
            statuses[Int(response.dropFirst(9).prefix(3)) ?? 0, default: 0] += 1
            if response.contains("\r\nConnection: close\r\n") { connection = try RawConnection(port: proxy.port) }
        }
        return statuses
    }

    private struct Line: Decodable {
        let id: UInt64?
        let lost: Int?
    }

    /// The lines of the log. Each must be a JSON object. While the disk is full, the last may be unfinished.
    private func lines(_ path: String) throws -> [Line] {
        try TextFile.text(path).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    }

    @Test func linesLostOnAFullDiskAreCounted() throws {
        let user = try Countersign()
        let disk = try SmallDisk(user.folder)
        let log = "\(disk.path)/access.log"
        try Data(count: 32 << 10).write(to: URL(fileURLWithPath: "\(disk.path)/filler"))
        let proxy = try user.serve("--access-log", log)
        #expect(try sendRequests(600, through: proxy) == [200: 600])
        #expect(proxy.process.errorOutput.contains("cannot write the access log \"\(log)\": No space left on device"))
        try FileManager.default.removeItem(atPath: "\(disk.path)/filler")
        let lost = try #require(try poll { try lines(log).compactMap(\.lost).first })
        #expect(try sendRequests(10, through: proxy) == [200: 10])
        let isComplete: Bool? = try poll {
            try lines(log).compactMap(\.id).count + lost == 610 ? true : nil
        }
        #expect(isComplete == true, "\(lost) lines are noted as lost")
        #expect(lost > 100)
        #expect(try lines(log).compactMap(\.lost) == [lost])
        #expect(proxy.process.errorOutput.contains("can be written again; \(lost) of its lines are lost"))
    }

    @Test func requiredLogRefusesWhatItCannotRecord() throws {
        let user = try Countersign()
        let disk = try SmallDisk(user.folder)
        let log = "\(disk.path)/access.log"
        let proxy = try user.serve("--access-log", log, "--access-log-required")
        let statuses = try sendRequests(600, through: proxy)
        let forwarded = statuses[200] ?? 0
        #expect(forwarded > 50 && statuses == [200: forwarded, 503: 600 - forwarded])
        #expect(try lines(log).compactMap(\.id).count == forwarded)
        #expect(proxy.process.errorOutput.contains("requests are refused until it can be written"))
        let refused = try proxy.get("http://unlisted.test.localhost:\(try Origins.shared.nginx.httpPort)/who")
        #expect(refused.status == 503 && refused.text.contains("the access log cannot be written"), "\(refused.said)")
        #expect(truncate(log, 0) == 0)
        let isServed: Bool? = try poll { try sendRequests(1, through: proxy) == [200: 1] ? true : nil }
        #expect(isServed == true)
        #expect(try lines(log).allSatisfy { $0.lost == nil })
    }

    @Test func requiredLogNeedsALog() throws {
        let seen = try Countersign().run(["serve", "--access-log-required"], environment: [:])
        #expect(seen.status == 64 && seen.error.contains("--access-log-required requires --access-log"))
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
