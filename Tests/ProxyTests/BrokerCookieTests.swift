// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Glibc
import NIOEmbedded
import Synchronization
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// The identity broker's header on requests to Microsoft's sign-in pages.
@Suite struct BrokerCookieTests {
    private static let page = Origin(scheme: .https, host: "login.microsoftonline.com", port: 443)
    private static let sites = """
        https://login.microsoftonline.com answer=broker credential=work
        https://login.microsoftonline.com:8443 answer=none
        https://other.example answer=none
        """
    private static let account = BrokerCookies.Account.signIn(name: "work", subject: "uid.utid", identifier: "1")
    private static let navigation = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"

    /// A broker that answers when the test says so.
    private final class StandIn: Sendable {
        typealias Question = (request: BrokerCookies.Request, done: @Sendable (BrokerCookies.Outcome) -> Void)
        private let questions = Mutex<[Question]>([])

        var cookies: BrokerCookies {
            BrokerCookies { request, done in self.questions.withLock { $0.append((request, done)) } }
        }

        var requests: [BrokerCookies.Request] { questions.withLock { $0.map(\.request) } }

        func answer(_ outcome: BrokerCookies.Outcome) { questions.withLock { $0.last?.done }?(outcome) }
    }

    private final class Stage {
        let broker = StandIn()
        let bench: Bench
        private var channels: [Origin: EmbeddedChannel] = [:]

        init(
            sites: String = sites, uid: UInt32 = getuid(), token: String? = nil,
            accounts: [String: BrokerCookies.Account] = ["work": account], lockReason: String? = nil,
            accessLog: AccessLog? = nil
        ) throws {
            bench = try Bench(
                sites: sites, token: token, uid: uid, brokerCookies: broker.cookies, brokerAccounts: accounts,
                lockReason: lockReason, accessLog: accessLog)
        }

        func origin(_ origin: Origin = page) throws -> EmbeddedChannel {
            let channel = try channels[origin] ?? bench.idleConnection(to: origin)
            channels[origin] = channel
            return channel
        }

        func send(_ fields: String, path: String = "/common", method: String = "GET", to origin: Origin = page) throws {
            _ = try self.origin(origin)
            try bench.send(
                "\(method) \(origin.scheme.rawValue)://\(origin.authority)\(path) HTTP/1.1\r\nHost: "
                    + "\(origin.authority)\r\n\(fields)\r\n")
        }

        /// The request that the origin receives, after the broker's answer if there is a question to it.
        func request(
            _ fields: String = navigation, path: String = "/common", method: String = "GET", to origin: Origin = page,
            answering outcome: BrokerCookies.Outcome = .cookie(Secret(utf8: "jwt"))
        ) throws -> (received: String, answer: String) {
            let asked = broker.requests.count
            try send(fields, path: path, method: method, to: origin)
            if broker.requests.count > asked {
                #expect(try self.origin(origin).sent() == "")
                broker.answer(outcome)
                bench.loop.run()
            }
            let received = try self.origin(origin).sent()
            try self.origin(origin).receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return (received, try bench.answer())
        }
    }

    private static let field = "\r\nx-ms-RefreshTokenCredential: jwt\r\n"

    @Test(arguments: [
        navigation, "Sec-Fetch-Dest: iframe\r\nSec-Fetch-Mode: navigate\r\n",
        "Sec-Fetch-Site: cross-site\r\n\(navigation)",
    ])
    func aNavigationGetsTheHeader(fields: String) throws {
        let stage = try Stage()
        let (received, answer) = try stage.request(fields)
        #expect(received.hasPrefix("GET /common HTTP/1.1\r\n") && received.contains(Self.field), "\(received)")
        #expect(answer.hasPrefix("HTTP/1.1 200") && !answer.contains("jwt") && !answer.contains("Proxy-Status"))
        #expect(
            stage.broker.requests == [
                .init(url: "https://login.microsoftonline.com/common", hasNonce: false, account: Self.account)
            ])
    }

    @Test(arguments: ["", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: cross-site\r\n"])
    func aFormGetsNoHeader(site: String) throws {
        let stage = try Stage()
        let received = try stage.request(site + Self.navigation, method: "POST").received
        #expect(received.hasPrefix("POST /common") && !received.contains("jwt") && stage.broker.requests == [])
    }

    @Test(arguments: [
        "", "Sec-Fetch-Mode: navigate\r\n", "Sec-Fetch-Dest: document\r\n",
        "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: document\r\n", "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: image\r\n",
        "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: iframe\r\n", "\(navigation)Sec-Purpose: prefetch;prerender\r\n",
        "\(navigation)Purpose: prefetch\r\n", "Sec-Fetch-Mode: cors\r\n\(navigation)",
        "\(navigation)Sec-Fetch-Dest: image\r\n", "\(navigation)Authorization: Bearer own\r\n",
        "\(navigation)X-MS-RefreshTokenCredential: own\r\n", "User-Agent: curl/8\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
    ])
    func noOtherRequestGetsIt(fields: String) throws {
        let stage = try Stage()
        let received = try stage.request(fields).received
        #expect(
            received.hasPrefix("GET /common HTTP/1.1\r\n") && (fields.isEmpty || received.contains(fields)),
            "\(received)")
        #expect(!received.contains("jwt") && stage.broker.requests == [])
    }

    @Test func noOtherOriginGetsIt() throws {
        let stage = try Stage()
        for origin in [
            Origin(scheme: .https, host: "login.microsoftonline.com", port: 8443),
            Origin(scheme: .https, host: "other.example", port: 443),
            Origin(scheme: .https, host: "a.login.microsoftonline.com", port: 443),
            Origin(scheme: .http, host: "login.microsoftonline.com", port: 80),
        ] {
            let received = try stage.request(to: origin).received
            #expect(received.hasPrefix("GET ") && !received.contains("jwt"), "\(origin): \(received)")
        }
        #expect(stage.broker.requests == [])
    }

    /// The redirect goes to the client, and the client's next request is a separate one.
    @Test func aRedirectToAnotherHostDoesNotTakeItAlong() throws {
        let stage = try Stage()
        try stage.send(Self.navigation)
        stage.broker.answer(.cookie(Secret(utf8: "jwt")))
        stage.bench.loop.run()
        #expect(try stage.origin().sent().contains(Self.field))
        try stage.origin().receive(
            "HTTP/1.1 302 Found\r\nLocation: https://other.example/\r\nContent-Length: 0\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.contains("Location: https://other.example/\r\n") && !answer.contains("jwt"))
        let other = Origin(scheme: .https, host: "other.example", port: 443)
        #expect(try !stage.request(to: other).received.contains("jwt"))
    }

    @Test func aClientOfAnotherUserNeedsTheToken() throws {
        let stranger = try Stage(uid: getuid() + 1)
        #expect(try !stranger.request().received.contains("jwt") && stranger.broker.requests == [])
        let admitted = try Stage(uid: getuid() + 1, token: "token")
        let fields = "Proxy-Authorization: Basic eDp0b2tlbg==\r\n\(Self.navigation)"
        #expect(try admitted.request(fields).received.contains(Self.field))
    }

    @Test(arguments: [
        ("/x?sso_nonce=n", true), ("/x?a=b&sso_nonce=n&c", true), ("/x?sso_nonce=", false), ("/x?xsso_nonce=n", false),
        ("/sso_nonce=n", false), ("/x?a=sso_nonce=n", false),
    ])
    func aNonceIsFoundInTheQuery(path: String, hasNonce: Bool) throws {
        let stage = try Stage()
        _ = try stage.request(path: path)
        #expect(stage.broker.requests.map(\.hasNonce) == [hasNonce])
        #expect(stage.broker.requests.map(\.url) == ["https://login.microsoftonline.com\(path)"])
    }

    @Test func withoutABrokerTheRequestIsUnchangedAndSaysWhy() throws {
        let stage = try Stage()
        let (received, answer) = try stage.request(answering: .unavailable(reason: "there is no session bus"))
        #expect(received.contains(Self.navigation) && !received.contains("RefreshTokenCredential"))
        #expect(
            answer.contains(
                "\r\nProxy-Status: countersign; details=\"not signed in by the identity broker: "
                    + "there is no session bus\"\r\n"))
    }

    // MARK: The account

    private static func unavailable(_ reason: String) -> String {
        "\r\nProxy-Status: countersign; details=\"not signed in by the identity broker: \(reason)\"\r\n"
    }

    /// For each of these reasons: the broker's only account is not a substitute.
    @Test(arguments: [
        (nil, [:], "credential \\\"work\\\" is not a sign-in of the identity broker"),
        (
            nil, ["work": BrokerCookies.Account.none(reason: "the sign-in has ended")], "the sign-in has ended"
        ), ("the vault is locked", [:], "the vault is locked"),
        ("the vault is locked", ["work": account], "the vault is locked"),
    ])
    func aNamedCredentialGetsNoOtherAccount(
        lockReason: String?, accounts: [String: BrokerCookies.Account], reason: String
    ) throws {
        let stage = try Stage(accounts: accounts, lockReason: lockReason)
        try stage.send(Self.navigation)
        #expect(stage.broker.requests.isEmpty)
        let received = try stage.origin().sent()
        #expect(received.hasPrefix("GET /common HTTP/1.1\r\n") && !received.contains("RefreshTokenCredential"))
        try stage.origin().receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.contains(Self.unavailable(reason)), "\(answer)")
    }

    @Test func aLineWithoutACredentialIsForTheOnlyAccount() throws {
        let line = "https://login.microsoftonline.com answer=broker"
        let stage = try Stage(sites: line, accounts: [:])
        #expect(try stage.request().received.contains(Self.field))
        #expect(stage.broker.requests.map(\.account) == [.only])
        // Unless a sign-in has the name that is meant then.
        let named = try Stage(sites: line, accounts: ["enrollment": Self.account])
        #expect(try named.request().received.contains(Self.field))
        #expect(named.broker.requests.map(\.account) == [Self.account])
    }

    @Test func aHeaderMayBeUsedAsLongAsItsAccountIsThere() throws {
        let open = try Bench.policy(sites: "", password: nil, brokerAccounts: ["work": Self.account])
        #expect(open.mayUse(Self.account) && open.mayUse(.only))
        #expect(!open.mayUse(.signIn(name: "work", subject: "uid.utid", identifier: "2")))
        #expect(!open.mayUse(.signIn(name: "play", subject: "uid.utid", identifier: "1")))
        #expect(!open.mayUse(.none(reason: "")))
        let locked = try Bench.policy(
            sites: "", password: nil, brokerAccounts: ["work": Self.account], lockReason: "locked")
        #expect(!locked.mayUse(Self.account) && !locked.mayUse(.only))
    }

    // MARK: Places that it must not reach

    /// A server whose certificate does not verify, with a client that accepts it.
    @Test func anUntrustedServerDoesNotGetTheHeader() throws {
        let stage = try Stage()
        let leaf = [UInt8](repeating: 7, count: 32)
        let origin = try stage.bench.untrustedConnection(to: Self.page, leaf: leaf)
        let pin = String(repeating: "07", count: 32)
        try stage.bench.send(
            "GET https://login.microsoftonline.com/common HTTP/1.1\r\nHost: login.microsoftonline.com\r\n"
                + "Countersign-Trust: sha256:\(pin)\r\n\(Self.navigation)\r\n")
        let received = try origin.sent()
        #expect(received.hasPrefix("GET /common HTTP/1.1\r\n") && !received.contains("RefreshTokenCredential"))
        #expect(stage.broker.requests.isEmpty)
    }

    @Test func theHeaderIsNotLogged() throws {
        let path = "/tmp/countersign-broker-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        defer { unlink(path) }
        let stage = try Stage(accessLog: AccessLog(path: path) { _ in })
        let secret = "eyJ-canary"
        #expect(try stage.request(path: "/x?q=1", answering: .cookie(Secret(utf8: secret))).received.contains(secret))
        _ = try stage.request(path: "/y?sso_nonce=n-canary", answering: .unavailable(reason: "there is no bus"))
        let lines = try Self.lines(path)
        #expect(lines.count == 2 && lines[1].contains("there is no bus"), "\(lines)")
        #expect(lines.allSatisfy { !$0.contains("canary") && !$0.contains("/x") })
    }

    private static func lines(_ path: String) throws -> [Substring] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n")
    }

    @Test func aClientThatHasGoneIsForgotten() throws {
        let stage = try Stage()
        try stage.send(Self.navigation)
        #expect(stage.broker.requests.count == 1)
        stage.bench.client.pipeline.fireChannelInactive()
        stage.broker.answer(.cookie(Secret(utf8: "jwt")))
        stage.bench.loop.run()
        #expect(try stage.origin().sent() == "")
    }

    /// The value is written into the head alone, and cannot end it.
    @Test func aValueCannotAddALine() throws {
        let stage = try Stage()
        let received = try stage.request(answering: .cookie(Secret(utf8: "a\r\nX: y"))).received
        #expect(received.contains("RefreshTokenCredential: a  X: y\r\n"), "\(received)")
    }
}
