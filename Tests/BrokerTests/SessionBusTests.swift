// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignTestOrigin
import Glibc
import Testing

@testable import CountersignBroker

/// The broker's client on a session bus with a stand-in broker.
@Suite struct SessionBusTests {
    private static let app = BrokerClientApp(
        identifier: "app", redirectURI: "https://app.example/", authority: "https://login.example/common",
        scopes: ["api"])

    private static func broker(_ address: String?) -> Broker {
        let environment = address.map { ["DBUS_SESSION_BUS_ADDRESS": $0] } ?? [:]
        return Broker(SessionBus(environment: environment), random: [UInt8](repeating: 7, count: 16))
    }

    private static func broker(in folder: TemporaryFolder) -> Broker {
        Broker(SessionBus(environment: ["XDG_RUNTIME_DIR": folder.path]), random: [UInt8](repeating: 0, count: 16))
    }

    private static let accounts: [String: any Sendable] = [
        "json": ["accounts": [IdentityBroker.account("jdoe@corp.example")]] as [String: any Sendable]
    ]

    @Test func theBrokerIsCalledAsItsOtherClientsCallIt() async throws {
        let standIn = try IdentityBroker([
            "getAccounts": Self.accounts,
            "acquireTokenSilently": IdentityBroker.token("at-@count", expires: 1_900_000_000),
            "getLinuxBrokerVersion": ["json": ["linuxBrokerVersion": "2.0.4"]],
        ])
        let broker = Self.broker(standIn.address)
        let account = try #require(try await broker.accounts(for: Self.app).first)
        let token = try await broker.token(for: Self.app, of: account)
        #expect(token.accessToken == Secret(utf8: "at-1") && token.expiresAt == 1_900_000_000)
        #expect(token.idToken == nil && token.scopes == ["api", "openid"])
        #expect(try await broker.version(of: "1.0") == "2.0.4")
        let calls = standIn.calls
        #expect(calls.map(\.method) == ["getAccounts", "acquireTokenSilently", "getLinuxBrokerVersion"])
        #expect(calls.allSatisfy { $0.version == "0.0" })
        #expect(Set(calls.map(\.correlation)) == ["07070707-0707-4707-8707-070707070707"])
        // Members that this version does not know come back, too.
        let sent = try #require(calls[1].request["account"] as? [String: Any])
        #expect((sent["later"] as? [String: Bool]) == ["kept": true] && sent["username"] as? String == account.username)
        #expect(calls[1].parameters["authorizationType"] as? Int == 1)
    }

    @Test func theCookieIsForTheURL() async throws {
        let cookie: [String: any Sendable] = ["cookieName": BrokerCookie.name, "cookieContent": "jwt-@count"]
        let items: [String: any Sendable] = ["cookieItems": [cookie]]
        let standIn = try IdentityBroker(["acquirePrtSsoCookie": ["json": cookie]])
        let broker = Self.broker(standIn.address)
        let account = try BrokerAccount(parsing: #"{"username":"jdoe"}"#)
        let url = "https://login.microsoftonline.com/x?sso_nonce=n"
        #expect(try await broker.cookie(for: url, of: account).content == Secret(utf8: "jwt-1"))
        try standIn.change(["acquirePrtSsoCookie": ["json": items]])
        #expect(try await broker.cookie(for: url, of: account).content == Secret(utf8: "jwt-2"))
        #expect(standIn.calls.allSatisfy { $0.request["ssoUrl"] as? String == url })
    }

    @Test func everyFailureHasItsOwnCode() async throws {
        let account = try BrokerAccount(parsing: #"{"username":"jdoe"}"#)
        let bus = try PrivateBus()
        func code(_ address: String?) async -> BrokerError.Code? {
            do throws(BrokerError) {
                _ = try await Self.broker(address).token(for: Self.app, of: account)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await code(nil) == .noBus)
        #expect(await code("unix:path=/nonexistent/bus") == .noBus)
        #expect(await code("nonsense") == .noBus)
        #expect(await code(bus.address) == .noBroker)
        let standIn = try IdentityBroker(on: bus)
        #expect(await code(bus.address) == .noMethod)
        for (reply, expected): ([String: any Sendable], BrokerError.Code) in [
            (["text": ""], .failed), (["json": ["error": ["context": "no"]] as [String: any Sendable]], .failed),
            (["error": ["org.freedesktop.DBus.Error.Failed", "no"]], .failed), (["text": "{"], .malformedReply),
            (
                ["json": ["brokerTokenResponse": ["error": ["context": "no"]]] as [String: any Sendable]],
                .failed
            ),
        ] {
            try standIn.change(["acquireTokenSilently": reply])
            #expect(await code(bus.address) == expected, "\(reply)")
        }
        standIn.stop()
        #expect(await code(bus.address) == .noBroker)
        bus.stop()
        #expect(await code(bus.address) == .noBus)
    }

    @Test func aBrokerThatDoesNotReplyIsGivenUp() async throws {
        let standIn = try IdentityBroker(["getAccounts": ["never": true]])
        let bus = SessionBus(environment: ["DBUS_SESSION_BUS_ADDRESS": standIn.address])
        let call = BrokerCall(.getAccounts, BrokerCall.accounts(for: Self.app).request, limit: .milliseconds(300))
        let error = await #expect(throws: BrokerError.self) { try await bus.reply(to: call, correlation: "c") }
        #expect(error?.code == .timedOut)
    }

    /// libdbus waits for such a bus without end.
    @Test func aBusThatAcceptsNoConnectionIsGivenUp() async throws {
        let socket = try FullSocket()
        let bus = SessionBus(environment: ["DBUS_SESSION_BUS_ADDRESS": socket.address])
        let call = BrokerCall(.getAccounts, BrokerCall.accounts(for: Self.app).request, limit: .milliseconds(300))
        let error = await #expect(throws: BrokerError.self) { try await bus.reply(to: call, correlation: "c") }
        #expect(error?.code == .timedOut)
        #expect(throws: BrokerError(.timedOut, "")) { try bus.replyBlocking(to: call, correlation: "c") }
        let endless = Task { try await bus.reply(to: .interactiveToken(for: Self.app, of: nil), correlation: "c") }
        endless.cancel()
        await #expect(throws: BrokerError(.cancelled, "")) { try await endless.value }
    }

    @Test func aCallEndsWhenItsTaskIsCancelled() async throws {
        let standIn = try IdentityBroker(["acquireTokenInteractively": ["never": true]])
        let broker = Self.broker(standIn.address)
        let call = Task { () -> BrokerError.Code? in
            do throws(BrokerError) {
                _ = try await broker.interactiveToken(for: Self.app, of: nil)
                return nil
            } catch {
                return error.code
            }
        }
        try await standIn.isCalled()
        call.cancel()
        #expect(await call.value == .cancelled)
    }

    @Test func aLostBusEndsACall() async throws {
        let standIn = try IdentityBroker(["acquireTokenInteractively": ["never": true]])
        let broker = Self.broker(standIn.address)
        let call = Task { try await broker.interactiveToken(for: Self.app, of: nil) }
        try await standIn.isCalled()
        standIn.bus.stop()
        await #expect(throws: BrokerError(.noBus, "")) { try await call.value }
    }

    @Test func theSocketOfTheRuntimeFolderIsTheBus() async throws {
        let folder = try TemporaryFolder("run time")
        let none = await #expect(throws: BrokerError.self) {
            try await Self.broker(in: folder).accounts(for: Self.app)
        }
        #expect(none?.detail.contains("DBUS_SESSION_BUS_ADDRESS is not set") == true)
        let standIn = try IdentityBroker(["getAccounts": Self.accounts])
        let path = try #require(standIn.address.split(separator: ",").first?.dropFirst("unix:path=".count))
        symlink(String(path), folder.file("bus"))
        #expect(try await Self.broker(in: folder).accounts(for: Self.app).map(\.username) == ["jdoe@corp.example"])
    }
}

extension IdentityBroker {
    /// Waits for the first call, without occupying a thread that the call may need.
    fileprivate func isCalled() async throws {
        let end = ContinuousClock.now + .seconds(60)
        while calls.isEmpty {
            try #require(ContinuousClock.now < end)
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
