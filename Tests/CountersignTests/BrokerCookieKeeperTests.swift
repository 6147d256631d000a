// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignCryptography
import CountersignProxy
import CountersignTestOrigin
import Glibc
import NIOConcurrencyHelpers
import Testing

@testable import Countersign

/// The headers of navigation requests, with a stand-in broker on a session bus.
@Suite struct BrokerCookieKeeperTests {
    private static let accounts: [String: any Sendable] = [
        "json": ["accounts": [IdentityBroker.account("jdoe@corp.example")]] as [String: any Sendable]
    ]
    private static let cookie: [String: any Sendable] = [
        "json": ["cookieItems": [["cookieName": BrokerCookie.name, "cookieContent": "jwt-@count"]]]
            as [String: any Sendable]
    ]

    private let reports = NIOLockedValueBox<[String]>([])

    private func keeper(
        _ address: String?, account: @escaping @Sendable (String) -> String? = { _ in nil }
    ) -> BrokerCookieKeeper {
        let environment = address.map { ["DBUS_SESSION_BUS_ADDRESS": $0] } ?? [:]
        let broker = Broker(SessionBus(environment: environment), random: Randomness.bytes(16))
        return BrokerCookieKeeper(broker: broker, account: account) { [reports] sentence, _ in
            reports.withLockedValue { $0.append(sentence) }
        }
    }

    private static func request(_ path: String, nonce: Bool = false) -> BrokerCookies.Request {
        BrokerCookies.Request(
            url: "https://login.microsoftonline.com/\(path)", hasNonce: nonce, credential: "enrollment")
    }

    private func get(_ keeper: BrokerCookieKeeper, _ request: BrokerCookies.Request) async -> BrokerCookies.Outcome {
        await withCheckedContinuation { continuation in
            keeper.cookies.get(request) { continuation.resume(returning: $0) }
        }
    }

    private static func content(_ text: String) -> BrokerCookies.Outcome { .cookie(Secret(utf8: text)) }

    @Test func aHeaderWithoutANonceIsUsedAgain() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-1"))
        #expect(await get(keeper, Self.request("b")) == Self.content("jwt-1"))
        #expect(standIn.calls.map(\.method) == ["getAccounts", "acquirePrtSsoCookie"])
        #expect(standIn.calls[1].request["ssoUrl"] as? String == "https://login.microsoftonline.com/a")
        #expect(standIn.calls[1].parameters["username"] as? String == "jdoe@corp.example")
    }

    @Test func aNonceGetsAHeaderOfItsOwn() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a?sso_nonce=1", nonce: true)) == Self.content("jwt-1"))
        #expect(await get(keeper, Self.request("a?sso_nonce=1", nonce: true)) == Self.content("jwt-2"))
        // It is not for other URLs.
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-3"))
        let urls = standIn.calls.compactMap { $0.request["ssoUrl"] as? String }
        #expect(
            urls.map { String($0.dropFirst("https://login.microsoftonline.com/".count)) } == [
                "a?sso_nonce=1", "a?sso_nonce=1", "a",
            ])
    }

    @Test func requestsAtTheSameTimeShareOneCall() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        let outcomes = await withTaskGroup(of: BrokerCookies.Outcome.self) { group in
            for number in 0..<20 { group.addTask { await get(keeper, Self.request("\(number)")) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count == 20 && outcomes.allSatisfy { $0 == Self.content("jwt-1") })
        #expect(standIn.calls.map(\.method) == ["getAccounts", "acquirePrtSsoCookie"])
    }

    @Test func theReasonForNoHeaderIsToldOnce() async throws {
        let keeper = keeper(nil)
        for _ in 0..<2 {
            let outcome = await get(keeper, Self.request("a"))
            guard case .unavailable(let reason) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(reason.hasPrefix("there is no session bus for the identity broker: "))
        }
        #expect(reports.withLockedValue { $0.count } == 1)
        let empty = try IdentityBroker(["getAccounts": ["json": ["accounts": [String]()]]])
        #expect(
            await get(self.keeper(empty.address), Self.request("a"))
                == .unavailable(reason: "the identity broker has no account"))
    }

    @Test func oneOfSeveralAccountsMustBeChosen() async throws {
        let two: [String: any Sendable] = [
            "json": [
                "accounts": [IdentityBroker.account("a@corp.example"), IdentityBroker.account("b@corp.example")]
            ] as [String: any Sendable]
        ]
        let standIn = try IdentityBroker(["getAccounts": two, "acquirePrtSsoCookie": Self.cookie])
        let none = await get(keeper(standIn.address), Self.request("a"))
        guard case .unavailable(let reason) = none else {
            Issue.record("\(none)")
            return
        }
        #expect(reason.contains("2 accounts"))
        let chosen = keeper(standIn.address) { $0 == "enrollment" ? "B@corp.example" : nil }
        #expect(await get(chosen, Self.request("a")) == Self.content("jwt-1"))
        #expect(standIn.calls.last?.parameters["username"] as? String == "b@corp.example")
    }

    @Test func aStoppedProxyDoesNotWait() async throws {
        let standIn = try IdentityBroker(["getAccounts": ["never": true]])
        let keeper = keeper(standIn.address)
        async let outcome = get(keeper, Self.request("a"))
        _ = try await eventually { !standIn.calls.isEmpty }
        keeper.stop()
        guard case .unavailable = await outcome else {
            Issue.record("a header without a reply")
            return
        }
        #expect(await get(keeper, Self.request("b")) == .unavailable(reason: "the proxy is stopping"))
        #expect(reports.withLockedValue { $0 } == [])
    }

    @Test func explainAsksTheBroker() throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts])
        let check = BrokerReach.check(
            for: nil, environment: ["DBUS_SESSION_BUS_ADDRESS": standIn.address])
        #expect(check.passed && check.reason.hasSuffix("signed in as jdoe@corp.example"))
        let other = BrokerReach.check(
            for: "other@corp.example", environment: ["DBUS_SESSION_BUS_ADDRESS": standIn.address])
        #expect(!other.passed && other.reason.contains("other@corp.example"))
        let without = BrokerReach.check(for: nil, environment: [:])
        #expect(!without.passed && without.reason.hasPrefix("there is no session bus"))
    }
}
