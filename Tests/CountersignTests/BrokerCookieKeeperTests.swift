// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignCryptography
import CountersignAnswering
import CountersignTestOrigin
import Glibc
import NIOConcurrencyHelpers
import Testing

@testable import Countersign

/// The headers of navigation requests, with a stand-in broker on a session bus.
@Suite(.waiting) struct BrokerCookieKeeperTests {
    private static let accounts: [String: any Sendable] = [
        "json": ["accounts": [IdentityBroker.account("jdoe@corp.example")]] as [String: any Sendable]
    ]
    private static let cookie: [String: any Sendable] = [
        "json": ["cookieItems": [["cookieName": BrokerCookie.name, "cookieContent": "jwt-@count"]]]
            as [String: any Sendable]
    ]

    private let reports = NIOLockedValueBox<[String]>([])

    private typealias Account = BrokerCookies.Account

    /// How far the keeper's clock is ahead.
    private let later = NIOLockedValueBox(Duration.zero)
    private let usable = NIOLockedValueBox(true)

    private func keeper(_ address: String?, patience: Duration = .seconds(60)) -> BrokerCookieKeeper {
        let environment = address.map { ["DBUS_SESSION_BUS_ADDRESS": $0] } ?? [:]
        let broker = Broker(SessionBus(environment: environment), random: Randomness.bytes(16))
        return BrokerCookieKeeper(
            broker: broker, mayUse: { [usable] _ in usable.withLockedValue { $0 } }, patience: patience,
            now: { [later] in .now + later.withLockedValue { $0 } }
        ) { [reports] sentence, _ in
            reports.withLockedValue { $0.append(sentence) }
        }
    }

    private static func request(
        _ path: String, nonce: Bool = false, account: BrokerCookies.Account = .only
    ) -> BrokerCookies.Request {
        BrokerCookies.Request(
            url: "https://login.microsoftonline.com/\(path)", hasNonce: nonce, account: account)
    }

    /// The account of a sign-in.
    private static func signIn(_ subject: String, identifier: String = "1") -> BrokerCookies.Account {
        .signIn(name: "work", subject: subject, identifier: identifier)
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
                "accounts": [
                    IdentityBroker.account("a@corp.example", home: "uid.a"),
                    IdentityBroker.account("b@corp.example", home: "uid.b"),
                ]
            ] as [String: any Sendable]
        ]
        let standIn = try IdentityBroker(["getAccounts": two, "acquirePrtSsoCookie": Self.cookie])
        // The names are for the log, and not for responses.
        #expect(
            await get(keeper(standIn.address), Self.request("a"))
                == .unavailable(reason: "the identity broker has 2 accounts, and none of them was chosen"))
        #expect(reports.withLockedValue { $0.last }?.contains("a@corp.example, b@corp.example") == true)
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a", account: Self.signIn("uid.b"))) == Self.content("jwt-1"))
        #expect(standIn.calls.last?.parameters["username"] as? String == "b@corp.example")
        // The header of one account is not that of another.
        #expect(await get(keeper, Self.request("a", account: Self.signIn("uid.a"))) == Self.content("jwt-2"))
        #expect(standIn.calls.last?.parameters["username"] as? String == "a@corp.example")
        #expect(await get(keeper, Self.request("a", account: Self.signIn("uid.b"))) == Self.content("jwt-1"))
        // Nor is that of a sign-in that was replaced.
        let again = Self.signIn("uid.b", identifier: "2")
        #expect(await get(keeper, Self.request("a", account: again)) == Self.content("jwt-3"))
    }

    @Test func anAccountThatIsNotThereGetsNoOther() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(
            await get(keeper, Self.request("a", account: Self.signIn("uid.other")))
                == .unavailable(
                    reason: "the identity broker does not have the account of the sign-in \"work\" any more"))
        #expect(standIn.calls.map(\.method) == ["getAccounts"])
        #expect(
            await get(keeper, Self.request("a", account: .none(reason: "the vault is locked")))
                == .unavailable(reason: "the vault is locked"))
        #expect(standIn.calls.count == 1)
    }

    /// The account's name may be in the broker's text.
    @Test func theBrokersTextIsForTheLogOnly() async throws {
        let standIn = try IdentityBroker([
            "getAccounts": Self.accounts,
            "acquirePrtSsoCookie": ["json": ["error": ["context": "jdoe@corp.example is blocked"]]],
        ])
        #expect(
            await get(keeper(standIn.address), Self.request("a"))
                == .unavailable(reason: "the identity broker failed at acquirePrtSsoCookie"))
        #expect(reports.withLockedValue { $0.last }?.hasSuffix("jdoe@corp.example is blocked") == true)
    }

    // MARK: Expiry

    @Test func aHeaderIsForgottenAfterAMinute() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-1"))
        // Not close to the end: the clock goes on.
        later.withLockedValue { $0 = .seconds(20) }
        keeper.forget()
        #expect(keeper.headerCount == 1)
        later.withLockedValue { $0 = .seconds(61) }
        keeper.forget()
        #expect(keeper.headerCount == 0)
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-2"))
    }

    @Test func aHeaderIsForgottenWithItsSignIn() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-1"))
        usable.withLockedValue { $0 = false }
        keeper.forget()
        #expect(keeper.headerCount == 0)
        // One that arrives after that is not used.
        #expect(
            await get(keeper, Self.request("a"))
                == .unavailable(reason: "the account is not that of the site's line any more"))
        #expect(keeper.headerCount == 0)
    }

    // MARK: A broker that is slow

    private static let notInTime = BrokerCookies.Outcome.unavailable(
        reason: "the identity broker has not answered in time")

    @Test(arguments: [true, false]) func aSlowBrokerHoldsUpOnePageOnly(nonce: Bool) async throws {
        let standIn = try IdentityBroker(["getAccounts": ["never": true]])
        let keeper = keeper(standIn.address, patience: .milliseconds(200))
        #expect(await get(keeper, Self.request("a", nonce: nonce)) == Self.notInTime)
        let calls = standIn.calls.count
        for _ in 0..<5 { #expect(await get(keeper, Self.request("b")) == Self.notInTime) }
        #expect(await get(keeper, Self.request("c", nonce: true)) == Self.notInTime)
        #expect(standIn.calls.count <= max(1, calls))
        #expect(reports.withLockedValue { $0.count } == 1)
        keeper.stop()
    }

    @Test func aBusThatAcceptsNoConnectionHoldsUpNothing() async throws {
        let socket = try FullSocket()
        let keeper = keeper(socket.address, patience: .milliseconds(200))
        #expect(await get(keeper, Self.request("a")) == Self.notInTime)
        keeper.stop()
    }

    @Test func aLateHeaderIsForTheNextPage() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": ["wait": true]])
        let keeper = keeper(standIn.address, patience: .milliseconds(200))
        #expect(await get(keeper, Self.request("a")) == Self.notInTime)
        try standIn.change(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        #expect(try await eventually { keeper.headerCount == 1 })
        #expect(await get(keeper, Self.request("b")) == Self.content("jwt-1"))
    }

    @Test func aFailureForANonceLeavesTheHeader() async throws {
        let standIn = try IdentityBroker(["getAccounts": Self.accounts, "acquirePrtSsoCookie": Self.cookie])
        let keeper = keeper(standIn.address)
        #expect(await get(keeper, Self.request("a")) == Self.content("jwt-1"))
        try standIn.change(["getAccounts": Self.accounts, "acquirePrtSsoCookie": ["text": ""]])
        let failed = BrokerCookies.Outcome.unavailable(reason: "the identity broker failed at acquirePrtSsoCookie")
        #expect(await get(keeper, Self.request("a?sso_nonce=1", nonce: true)) == failed)
        #expect(await get(keeper, Self.request("b")) == Self.content("jwt-1"))
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
        let environment = ["DBUS_SESSION_BUS_ADDRESS": standIn.address]
        let check = BrokerReach.check(for: .only, environment: environment)
        #expect(check.passed && check.reason.hasSuffix("signed in as jdoe@corp.example"))
        #expect(BrokerReach.check(for: Self.signIn("uid.utid"), environment: environment).passed)
        let other = BrokerReach.check(for: Self.signIn("uid.other"), environment: environment)
        #expect(!other.passed && other.reason.contains("the account of the sign-in \"work\""))
        let none = BrokerReach.check(for: .none(reason: "the vault is locked"), environment: environment)
        #expect(!none.passed && none.reason == "the vault is locked")
        let without = BrokerReach.check(for: .only, environment: [:])
        #expect(!without.passed && without.reason.hasPrefix("there is no session bus"))
    }
}
