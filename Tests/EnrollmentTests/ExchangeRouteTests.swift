// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignParents
import CountersignRouting
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignEnrollment

/// Requests with libcurl through parents on loopback.
@Suite struct ExchangeRouteTests {
    private func hop(_ port: Int) throws -> NextHop {
        .parent(ParentProxy(.http, try HostName(canonicalizing: "127.0.0.1", for: .forwarded), UInt16(port)))
    }

    private func send(
        _ url: String, through hops: [NextHop], relay: (any ControlRelay)? = nil, seconds: Int = 20
    ) async throws -> WebExchange.Response {
        let url = try AbsoluteURL(parsing: url)
        var exchange = WebExchange(url.origin, target: url.path)
        exchange.isPublic = true
        var route = CurlRoute(hops: hops)
        route.relay = relay
        exchange.route = route
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

    // MARK: Through the relay

    /// A server in the relay's place.
    private final class StandIn: ControlRelay {
        let server: StatusServer

        init(_ server: StatusServer) { self.server = server }

        func door(to parents: [ParentProxy]) -> Secret? { Secret(utf8: "http://user:canary@127.0.0.1:\(server.port)") }

        func requestEnded() {}
    }

    private static func refusal(_ error: String) -> StatusServer.Reply {
        .status(502, fields: ["Proxy-Status: countersign; error=\(error); details=\"x\""], body: "countersign: x\n")
    }

    @Test func nothingOfTheRelaysOwnResponseIsLeftInThatOfADirectConnection() async throws {
        let relay = StandIn(try StatusServer { _ in Self.refusal("destination_unavailable") })
        let origin = try StatusServer { _ in .body(Array("hello".utf8)) }
        let response = try await send(origin.url("/"), through: [try hop(1), .direct], relay: relay)
        #expect(response.status == 200 && response.body.utf8Text == "hello")
        #expect(relay.server.requests.count == 1)
        #expect(origin.requests.allSatisfy { !$0.fields.contains { $0.hasPrefix("Proxy-Authorization") } })
    }

    @Test func aDirectConnectionThatIsFirstIsTriedFirst() async throws {
        let relay = StandIn(try StatusServer { _ in .body([1]) })
        let origin = try StatusServer { _ in .body([2]) }
        _ = try await send(origin.url("/"), through: [.direct, try hop(1)], relay: relay)
        #expect(origin.requests.count == 1 && relay.server.requests.isEmpty)
        let closed = try RefusingPort()
        _ = try await send("http://127.0.0.1:\(closed.number)/", through: [.direct, try hop(1)], relay: relay)
        #expect(relay.server.requests.count == 1)
    }

    @Test(arguments: ["tls_certificate_error", "connection_refused", "http_response_timeout"])
    func anythingElseThanAMissingConnectionIsFinal(error: String) async throws {
        let relay = StandIn(try StatusServer { _ in Self.refusal(error) })
        let origin = try StatusServer { _ in .body([2]) }
        let failed = await failure { try await send(origin.url("/"), through: [try hop(1), .direct], relay: relay) }
        #expect(failed?.code == .unreachable && failed?.detail == "x")
        #expect(origin.requests.isEmpty)
    }

    @Test func withTLSToAParentAMissingConnectionIsFinalToo() async throws {
        let relay = StandIn(try StatusServer { _ in Self.refusal("connection_timeout") })
        let origin = try StatusServer { _ in .body([2]) }
        let parent = ParentProxy(.https, try HostName(canonicalizing: "127.0.0.1", for: .forwarded), 1)
        let hops = [NextHop.parent(parent), .direct]
        let failed = await failure { try await send(origin.url("/"), through: hops, relay: relay) }
        #expect(failed?.detail == "no connection to the parent https://127.0.0.1:1: x")
        #expect(origin.requests.isEmpty)
    }

    /// An origin cannot have a request sent again, and a parent's challenge is named as one.
    @Test func aResponseThatTheRelayHasForwardedIsTheOriginsUnlessItIsAChallenge() async throws {
        let fields = ["Via: 1.1 relay", "Proxy-Status: cdn; error=destination_unavailable"]
        for status in [502, 407] {
            let relay = StandIn(try StatusServer { _ in .status(status, fields: fields) })
            let origin = try StatusServer { _ in .body([2]) }
            func send() async throws -> WebExchange.Response {
                try await self.send(origin.url("/"), through: [try hop(1), .direct], relay: relay)
            }
            if status == 407 {
                let failed = await failure(send)
                #expect(failed?.detail.contains("requires authentication") == true)
            } else {
                #expect(try await send().status == 502)
            }
            #expect(origin.requests.isEmpty)
        }
    }
}
