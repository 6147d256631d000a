// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCookies
import CountersignCryptography
import Glibc
import NIOEmbedded
import Testing

@testable import CountersignProxy

@Suite struct SharedSessionTests {
    private static let now: Int64 = 1_800_000_000
    private static let key = SharedSession.Key(group: "corp", host: "login.example")
    private static let sites = """
        https://login.example answer=none session=corp cookies=sid,lb
        https://login.example:8443 answer=none
        https://other.example answer=none session=other cookies=sid
        https://a.login.example answer=none session=corp cookies=sid
        """

    private static func cookie(
        _ name: String, _ value: String, path: String = "/", sameSite: Cookie.SameSite = .unspecified,
        expires: Int64? = nil
    ) -> Cookie {
        Cookie(
            .init(name: name, domain: key.host, isHostOnly: true, path: path), value: Secret(utf8: value),
            isSecure: true, isHTTPOnly: true, sameSite: sameSite, expires: expires, stored: now)
    }

    private static func stored(_ cookies: [Cookie]) -> [SharedSession.Key: SharedSession] {
        var session = SharedSession(key: key)
        for cookie in cookies { session.apply(.set(cookie)) }
        return cookies.isEmpty ? [:] : [key: session]
    }

    /// A client of the group, whose session has the cookies.
    private final class Stage {
        let store = SessionStore { ["example"].contains($0) }
        let bench: Bench
        private var channels: [Origin: EmbeddedChannel] = [:]

        init(_ cookies: [Cookie], uid: UInt32 = getuid(), token: String? = nil) throws {
            store.adopt(stored(cookies))
            bench = try Bench(sites: sites, token: token, sessions: store, uid: uid)
        }

        /// What the origin receives for a request with these fields.
        func request(
            _ fields: String = "", method: String = "GET", path: String = "/am?x",
            response: String = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            to origin: Origin = Origin(scheme: .https, host: "login.example", port: 443)
        ) throws -> (received: String, answer: String) {
            let channel = try channels[origin] ?? bench.idleConnection(to: origin)
            channels[origin] = channel
            try bench.send(
                "\(method) \(origin.scheme.rawValue)://\(origin.authority)\(path) HTTP/1.1\r\nHost: "
                    + "\(origin.authority)\r\n\(fields)\r\n")
            let received = try channel.sent()
            try channel.receive(response)
            return (received, try bench.answer())
        }

        /// The Cookie lines that the origin receives.
        func cookies(_ fields: String = "", method: String = "GET", path: String = "/am?x") throws -> [String] {
            let received = try request(fields, method: method, path: path).received
            try #require(received.hasPrefix("\(method) \(path) HTTP/1.1\r\n"))
            return received.split(separator: "\r\n").map(String.init).filter { $0.hasPrefix("Cookie") }
        }

        func receive(_ setCookies: [String], _ fields: String = "") throws -> String {
            let lines = setCookies.map { "Set-Cookie: \($0)\r\n" }.joined()
            return try request(fields, response: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\(lines)\r\n").answer
        }
    }

    // MARK: Requests

    @Test func theGroupsClientsGetTheCookies() throws {
        let stage = try Stage([Self.cookie("sid", "a b"), Self.cookie("lb", "1", path: "/am")])
        #expect(try stage.cookies() == ["Cookie: lb=1; sid=a b"])
        #expect(try stage.cookies(path: "/") == ["Cookie: sid=a b"])
        #expect(
            try stage.cookies("Cookie: own=1\r\nX: y\r\nCookie: two=2\r\n") == ["Cookie: own=1; two=2; lb=1; sid=a b"])
        // The client's own cookie wins.
        #expect(try stage.cookies("Cookie: x=1; sid=mine\r\n") == ["Cookie: x=1; sid=mine; lb=1"])
        #expect(try stage.cookies("Cookie:  lb=; sid=mine\r\n") == ["Cookie:  lb=; sid=mine"])
    }

    @Test func noOtherOriginGetsThem() throws {
        let stage = try Stage([Self.cookie("sid", "canary")])
        for origin in [
            Origin(scheme: .https, host: "login.example", port: 8443),
            Origin(scheme: .https, host: "other.example", port: 443),
            Origin(scheme: .https, host: "a.login.example", port: 443),
            Origin(scheme: .https, host: "example", port: 443), Origin(scheme: .http, host: "login.example", port: 80),
        ] {
            let received = try stage.request(to: origin).received
            #expect(received.hasPrefix("GET ") && !received.contains("canary"), "\(origin): \(received)")
        }
    }

    /// Cookies that the line does not name are not sent, although the vault has them.
    @Test func onlyNamedCookiesAreSent() throws {
        let stage = try Stage([Self.cookie("sid", "1"), Self.cookie("former", "2")])
        #expect(try stage.cookies() == ["Cookie: sid=1"])
    }

    @Test func anExpiredCookieIsNotSent() throws {
        let stage = try Stage([
            Self.cookie("sid", "1", expires: Self.now), Self.cookie("lb", "2", expires: Self.now + 1),
        ])
        #expect(try stage.cookies() == ["Cookie: lb=2"])
    }

    @Test func aClientOfAnotherUserNeedsTheToken() throws {
        let cookies = [Self.cookie("sid", "1")]
        let stranger = try Stage(cookies, uid: getuid() + 1)
        #expect(try stranger.cookies() == [])
        _ = try stranger.receive(["sid=stolen"])
        #expect(stranger.store.session(Self.key)?.cookies == cookies)
        let admitted = try Stage(cookies, uid: getuid() + 1, token: "token")
        #expect(try admitted.cookies("Proxy-Authorization: Basic eDp0b2tlbg==\r\n") == ["Cookie: sid=1"])
    }

    @Test func aClientThatAuthenticatesItselfGetsNone() throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        #expect(try stage.cookies("Authorization: Bearer own\r\n") == [])
    }

    @Test(arguments: [
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n", "Origin: https://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", "Origin: null\r\n",
    ])
    func aPageOfAnotherOriginGetsNothingByIt(fields: String) throws {
        let stage = try Stage([Self.cookie("sid", "1", sameSite: .lax)])
        #expect(try stage.cookies(fields) == [])
    }

    @Test func aNavigationGetsThemUnlessTheyAreStrict() throws {
        let stage = try Stage([Self.cookie("sid", "1"), Self.cookie("lb", "2", sameSite: .strict)])
        let fields = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
        #expect(try stage.cookies(fields) == ["Cookie: sid=1"])
        #expect(try stage.cookies(fields, method: "DELETE") == [])
    }

    @Test func aClosedVaultGivesNothingAndTakesNothing() throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        stage.store.close()
        #expect(try stage.cookies() == [])
        _ = try stage.receive(["sid=2"])
        #expect(stage.store.session(Self.key) == nil && stage.store.changes(at: Self.now).isEmpty)
    }

    // MARK: Responses

    @Test func theNamedCookiesOfAResponseAreTaken() throws {
        let stage = try Stage([])
        let lines = ["sid=new; Secure; HttpOnly; Path=/", "lb=1; Max-Age=60", "other=x; Path=/"]
        let answer = try stage.receive(lines)
        for line in lines { #expect(answer.contains("Set-Cookie: \(line)\r\n")) }
        let session = try #require(stage.store.session(Self.key))
        #expect(session.cookies.map(\.name) == ["sid", "lb"] && session.cookies[1].expires == Self.now + 60)
        #expect(try stage.cookies(path: "/") == ["Cookie: sid=new; lb=1"])
        #expect(
            stage.store.changes(at: Self.now).values.flatMap(\.self)
                == session.cookies.map { SharedSession.Change.set($0) })
    }

    @Test func aPageThatSetsManyCookiesFillsNothing() throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        for round in 0..<10 {
            _ = try stage.receive((0..<100).map { "c\(round)-\($0)=x" })
            _ = try stage.receive((0..<100).map { "sid=x; Path=/\(round)/\($0)" })
        }
        let session = try #require(stage.store.session(Self.key))
        #expect(session.cookies.count == 64 && session.cookies.allSatisfy { $0.name == "sid" })
        #expect(session.cookies.first == Self.cookie("sid", "1"))
    }

    @Test func aSignOutRemovesTheSession() throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        _ = try stage.receive(["sid=; Path=/; Max-Age=0"])
        #expect(stage.store.session(Self.key) == nil)
        #expect(try stage.cookies() == [])
    }

    @Test(arguments: [
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "Origin: https://evil.example\r\n",
        "Authorization: Basic eDp4\r\n",
    ])
    func aRequestThatGetsNothingChangesNothing(fields: String) throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        _ = try stage.receive(["sid=2; Path=/", "sid=; Path=/; Max-Age=0"], fields)
        #expect(stage.store.session(Self.key)?.cookies == [Self.cookie("sid", "1")])
    }

    // MARK: The vault

    @Test func changesStayUntilTheyAreWritten() throws {
        let store = SessionStore { _ in false }
        store.adopt(Self.stored([Self.cookie("sid", "1")]))
        store.received(
            [Array("sid=2; Path=/; Secure".utf8)[...]], named: ["sid"], path: [0x2F], for: Self.key, now: Self.now)
        let first = store.changes(at: Self.now)
        #expect(first.count == 1)
        // Another process has changed the vault.
        store.adopt(Self.stored([Self.cookie("lb", "1")]))
        #expect(store.session(Self.key)?.cookies.map(\.name) == ["lb", "sid"])
        // One more change arrives while the first is being written.
        store.received(
            [Array("sid=3; Path=/; Secure".utf8)[...]], named: ["sid"], path: [0x2F], for: Self.key, now: Self.now)
        store.adopt(Self.stored([Self.cookie("sid", "2")]), written: first)
        #expect(store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "3")])
        let second = store.changes(at: Self.now)
        #expect(second.values.map(\.count) == [1])
        store.adopt(Self.stored([Self.cookie("sid", "3")]), written: second)
        #expect(store.changes(at: Self.now).isEmpty)
        // The session was cleared.
        store.adopt([:])
        #expect(store.session(Self.key) == nil)
    }

    @Test func aCookieThatComesAgainIsNotWrittenAgain() throws {
        let store = SessionStore { _ in false }
        store.adopt([:])
        func receive(_ field: String, at time: Int64) -> Int {
            store.received([Array(field.utf8)[...]], named: ["sid"], path: [0x2F], for: Self.key, now: time)
            let changes = store.changes(at: time)
            store.adopt(store.session(Self.key).map { [Self.key: $0] } ?? [:], written: changes)
            return changes.values.reduce(0) { $0 + $1.count }
        }
        #expect(receive("sid=1; Max-Age=600", at: Self.now) == 1)
        #expect(receive("sid=1; Max-Age=600", at: Self.now + 59) == 0)
        #expect(receive("sid=1; Max-Age=600", at: Self.now + 60) == 1)
        #expect(receive("sid=2; Max-Age=600", at: Self.now + 61) == 1)
        // Its end is a change.
        #expect(store.changes(at: Self.now + 660).isEmpty)
        #expect(store.changes(at: Self.now + 661).values.map(\.count) == [1])
        #expect(store.session(Self.key) == nil)
    }
}
