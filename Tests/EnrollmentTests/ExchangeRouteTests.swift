// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignParents
import CountersignRouting
import CountersignSitePolicy
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignEnrollment

/// Requests with libcurl through parents on loopback.
@Suite struct ExchangeRouteTests {
    private func hop(_ port: Int) throws -> NextHop {
        .parent(ParentProxy(.http, try HostName(canonicalizing: "127.0.0.1", for: .forwarded), UInt16(port)))
    }

    private func send(_ url: String, through hops: [NextHop], seconds: Int = 20) async throws -> WebExchange.Response {
        let url = try AbsoluteURL(parsing: url)
        var exchange = WebExchange(url.origin, target: url.path)
        exchange.isPublic = true
        exchange.route = CurlRoute(hops: hops)
        exchange.limit = .seconds(seconds)
        return try await exchange.run(
            .implicit(additional: [], revocationLists: []), now: { Int64(Date().timeIntervalSince1970) })
    }

    private func failure(_ body: () async throws -> WebExchange.Response) async -> EnrollmentError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? EnrollmentError
        }
    }

    @Test func aParentGetsTheWholeURLAndResolvesTheName() async throws {
        let parent = try StatusServer { _ in .body(Array("hello".utf8)) }
        let response = try await send("http://www.corp.invalid/a?b", through: [try hop(parent.port)])
        #expect(response.body.utf8Text == "hello")
        #expect(parent.requests.map(\.path) == ["http://www.corp.invalid/a?b"])
    }

    @Test func theNextHopIsTriedIfAParentAcceptsNoConnection() async throws {
        let closed = try RefusingPort()
        let parent = try StatusServer { _ in .body([1]) }
        let response = try await send(
            "http://www.corp.invalid/", through: [try hop(closed.number), try hop(parent.port)])
        #expect(response.status == 200 && parent.requests.count == 1)
        let direct = try await send(parent.url("/x"), through: [try hop(closed.number), .direct])
        #expect(direct.status == 200 && parent.requests.last?.path == "/x")
    }

    @Test func aRequestThatAParentMayHaveSentIsNotRepeated() async throws {
        let silent = try StatusServer { _ in .silence }
        let parent = try StatusServer { _ in .body([1]) }
        let error = await failure {
            try await send(
                "http://www.corp.invalid/", through: [try hop(silent.port), try hop(parent.port)], seconds: 1)
        }
        #expect(error?.code == .timedOut)
        #expect(silent.requests.count == 1 && parent.requests.isEmpty)
    }

    @Test(arguments: [407, 403])
    func aParentThatOpensNoTunnelIsNamed(status: Int) async throws {
        let parent = try StatusServer { _ in .status(status, fields: ["Proxy-Authenticate: Basic realm=\"corp\""]) }
        let error = await failure { try await send("https://www.corp.invalid/", through: [try hop(parent.port)]) }
        #expect(error?.code == .unreachable)
        let detail = try #require(error).detail
        #expect(detail.hasPrefix("the parent http://127.0.0.1:\(parent.port) re"), "\(detail)")
        #expect(detail.contains(status == 407 ? "requires authentication" : "status 403"), "\(detail)")
        #expect(parent.requests.map(\.method) == ["CONNECT"])
    }

    @Test func withoutAnyParentTheErrorNamesTheLastOne() async throws {
        let closed = try RefusingPort()
        let error = await failure { try await send("https://www.corp.invalid/", through: [try hop(closed.number)]) }
        #expect(error?.detail == "no connection to the parent http://127.0.0.1:\(closed.number)")
        #expect(error?.hint?.contains("--parent") == true)
    }
}
