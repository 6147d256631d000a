// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCookies
import CountersignCryptography
import Glibc
import NIOEmbedded
import Testing

@testable import CountersignAnswering
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

        /// The request that the origin receives for one with these fields.
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

        func receive(_ setCookies: [String], _ fields: String = "", method: String = "GET") throws -> String {
            let lines = setCookies.map { "Set-Cookie: \($0)\r\n" }.joined()
            let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\(lines)\r\n"
            return try request(fields, method: method, response: response).answer
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
            stage.store.changes(at: Self.now).lists.values.flatMap(\.self)
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
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Purpose: prefetch\r\n",
        "Referer: https://evil.example/\r\n", "User-Agent: Mozilla/5.0\r\n",
    ])
    func aRequestThatGetsNothingChangesNothing(fields: String) throws {
        let stage = try Stage([Self.cookie("sid", "1")])
        _ = try stage.receive(["sid=2; Path=/", "sid=; Path=/; Max-Age=0"], fields)
        #expect(stage.store.session(Self.key)?.cookies == [Self.cookie("sid", "1")])
    }

    /// A form that another site sends gets the cookies with None only, and so it changes no others.
    @Test func aRequestChangesNoCookieThatItDoesNotGet() throws {
        let kept = [Self.cookie("sid", "1"), Self.cookie("lb", "2", sameSite: .strict)]
        let stage = try Stage(kept)
        let cause = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
        // The new attribute.
        _ = try stage.receive(["sid=x; Path=/; Secure", "lb=x; Path=/; Secure"], cause, method: "POST")
        // That of the stored cookie.
        let none = "; Path=/; Secure; SameSite=None"
        _ = try stage.receive(["sid=x\(none)", "sid=\(none); Max-Age=0"], cause, method: "POST")
        _ = try stage.receive(["lb=x\(none)", "lb=\(none); Max-Age=0"], cause)
        // A removal without a session, of a cookie that does not exist yet or is not permitted.
        _ = try stage.receive(["sid=; Path=/; Max-Age=0", "lb=; Path=/; Max-Age=0"], cause, method: "POST")
        #expect(stage.store.session(Self.key)?.cookies == kept)
        // A link changes those that it gets.
        _ = try stage.receive(["sid=3; Path=/; Secure; SameSite=Lax", "lb=; Path=/; Max-Age=0"], cause)
        #expect(stage.store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "3"), Secret(utf8: "2")])
        // A frame of the same origin changes all.
        let frame = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"
        _ = try stage.receive(["lb=; Path=/; Max-Age=0"], frame)
        #expect(stage.store.session(Self.key)?.cookies.map(\.name) == ["sid"])
    }

    @Test func aClientsOwnSessionDoesNotReplaceTheSharedOne() throws {
        let kept = [Self.cookie("sid", "1")]
        let stage = try Stage(kept)
        let own = "Cookie: x=1; sid=mine\r\n"
        _ = try stage.receive(["sid=mine; Path=/; Secure; Max-Age=600"], own)
        _ = try stage.receive(["sid=; Path=/; Max-Age=0"], own)
        _ = try stage.receive(["sid=; Path=/; Max-Age=0"], "Cookie: sid=1\r\n\(own)")
        #expect(stage.store.session(Self.key)?.cookies == kept)
        // A new sign-in does.
        _ = try stage.receive(["sid=2; Path=/; Secure"], own)
        #expect(stage.store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "2")])
        // And so does signing out with the shared one.
        _ = try stage.receive(["sid=; Path=/; Max-Age=0"], "Cookie:  sid = 2 ; x=1\r\n")
        #expect(stage.store.session(Self.key) == nil)
    }

    // MARK: The vault

    private static func receive(_ field: String, _ store: SessionStore, at time: Int64 = now) {
        store.received([Array(field.utf8)[...]], named: ["sid", "lb"], path: [0x2F], for: key, now: time)
    }

    private typealias Vault = SessionStore.Sessions

    /// The vault after the changes are written to it.
    private static func written(_ changes: SessionStore.Changes, to vault: Vault = [:]) -> Vault {
        var vault = vault
        for key in changes.lists.keys {
            var session = vault[key] ?? SharedSession(key: key)
            for change in changes.changes(to: key, in: vault) { session.apply(change) }
            vault[key] = session.cookies.isEmpty ? nil : session
        }
        return vault
    }

    @Test func changesStayUntilTheyAreWritten() throws {
        let store = SessionStore { _ in false }
        var vault = Self.stored([Self.cookie("sid", "1")])
        store.adopt(vault)
        Self.receive("sid=2; Path=/; Secure", store)
        let first = store.changes(at: Self.now)
        #expect(first.lists[Self.key]?.count == 1)
        // Another process has changed the vault.
        store.adopt(Self.stored([Self.cookie("sid", "1"), Self.cookie("lb", "1")]))
        #expect(store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "2"), Secret(utf8: "1")])
        // One more change arrives while the first is being written.
        Self.receive("sid=3; Path=/; Secure", store)
        vault = Self.written(first, to: vault)
        #expect(vault[Self.key]?.cookies.map(\.value) == [Secret(utf8: "2")])
        store.adopt(vault, written: first)
        #expect(store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "3")])
        let second = store.changes(at: Self.now, all: true)
        #expect(second.lists.values.map(\.count) == [1])
        store.adopt(Self.written(second, to: vault), written: second)
        #expect(store.changes(at: Self.now, all: true).isEmpty)
        store.adopt([:])
        #expect(store.session(Self.key) == nil)
    }

    /// Sessions that `session clear` and another process's sign-out have removed are not written again.
    @Test func aClearedSessionStaysCleared() throws {
        let store = SessionStore { _ in false }
        let vault = Self.stored([Self.cookie("sid", "1"), Self.cookie("lb", "1")])
        let set = ["sid=2; Path=/; Secure", "lb=2; Path=/; Secure", "sid=2; Path=/new; Secure"]
        // Cleared before the vault is read again.
        store.adopt(vault)
        for field in set { Self.receive(field, store) }
        let pending = store.changes(at: Self.now)
        #expect(pending.lists[Self.key]?.count == 3)
        #expect(Self.written(pending).isEmpty)
        // One cookie of it.
        let rest = Self.written(pending, to: Self.stored([Self.cookie("lb", "1")]))
        #expect(rest[Self.key]?.cookies.map(\.path) == ["/", "/new"])
        #expect(rest[Self.key]?.cookies.map(\.name) == ["lb", "sid"])
        // Cleared, and then read again.
        store.adopt([:])
        #expect(store.session(Self.key) == nil && store.changes(at: Self.now, all: true).isEmpty)
        // A new sign-in is another session.
        Self.receive(set[0], store)
        #expect(Self.written(store.changes(at: Self.now, all: true))[Self.key]?.cookies.count == 1)
    }

    /// A written removal is not taken for one by another process.
    @Test func aSignInAfterASignOutIsWritten() throws {
        let store = SessionStore { _ in false }
        store.adopt(Self.stored([Self.cookie("sid", "1")]))
        Self.receive("sid=; Path=/; Max-Age=0", store)
        let removal = store.changes(at: Self.now)
        #expect(removal.lists[Self.key]?.count == 1)
        Self.receive("sid=2; Path=/; Secure", store)
        store.adopt([:], written: removal)
        #expect(store.session(Self.key)?.cookies.count == 1)
        #expect(Self.written(store.changes(at: Self.now, all: true))[Self.key]?.cookies.count == 1)
    }

    /// While the vault cannot be written, the last change of each cookie is kept, and no removal is lost.
    @Test func anOriginCannotCrowdOutASignOut() throws {
        let store = SessionStore { _ in false }
        let vault = Self.stored([Self.cookie("sid", "1")])
        store.adopt(vault)
        for round in 0..<5000 {
            Self.receive("sid=\(round); Path=/\(round)", store, at: Self.now + Int64(round / 100))
            if round % 50 == 0 {
                let count = store.changes(at: Self.now, all: true).lists.values.reduce(0) { $0 + $1.count }
                #expect(count <= 4, "\(round)")
            }
            Self.receive("sid=; Path=/\(round); Max-Age=0", store, at: Self.now + Int64(round / 100))
            Self.receive("lb=\(round); Path=/", store, at: Self.now + Int64(round / 100))
        }
        Self.receive("sid=; Path=/; Max-Age=0", store)
        let changes = store.changes(at: Self.now, all: true)
        #expect(changes.lists[Self.key]?.contains(.remove(Self.cookie("sid", "").identity)) == true)
        #expect(Self.written(changes, to: vault)[Self.key]?.cookies.map(\.value) == [Secret(utf8: "4999")])
    }

    /// A removal of a cookie that may be in the vault already is kept, although the vault was not read since.
    @Test func aRemovalOfACookieThatIsBeingWrittenIsWritten() throws {
        let store = SessionStore { _ in false }
        store.adopt([:])
        Self.receive("sid=1; Path=/", store)
        let first = store.changes(at: Self.now)
        Self.receive("sid=; Path=/; Max-Age=0", store)
        let vault = Self.written(first)
        #expect(vault[Self.key]?.cookies.count == 1)
        store.adopt(vault, written: first)
        #expect(store.session(Self.key) == nil)
        #expect(Self.written(store.changes(at: Self.now), to: vault).isEmpty)
    }

    @Test func aRotatedCookieIsWrittenOnceAMinute() throws {
        let store = SessionStore { _ in false }
        var vault: Vault = [:]
        store.adopt(vault)
        func written(_ field: String, at time: Int64) -> Int {
            Self.receive(field, store, at: time)
            let changes = store.changes(at: time)
            vault = Self.written(changes, to: vault)
            if !changes.isEmpty { store.adopt(vault, written: changes) }
            return changes.lists.values.reduce(0) { $0 + $1.count }
        }
        #expect(written("sid=1; Max-Age=600", at: Self.now) == 1)
        for second in 1..<60 { #expect(written("sid=\(second)0; Max-Age=600", at: Self.now + Int64(second)) == 0) }
        #expect(store.session(Self.key)?.cookies.map(\.value) == [Secret(utf8: "590")])
        #expect(written("sid=2; Max-Age=600", at: Self.now + 60) == 1)
        // A new cookie is not kept waiting, and neither is a removal.
        #expect(written("lb=1", at: Self.now + 61) == 1)
        #expect(written("sid=3; Max-Age=600", at: Self.now + 62) == 0)
        #expect(written("lb=; Max-Age=0", at: Self.now + 63) == 2)
        #expect(vault[Self.key]?.cookies.map(\.value) == [Secret(utf8: "3")])
        // The last ones, as before the vault is locked.
        #expect(written("sid=4; Max-Age=600", at: Self.now + 64) == 0)
        #expect(store.changes(at: Self.now + 64, all: true).lists.values.map(\.count) == [1])
    }

    @Test func aCookieThatComesAgainIsNotWrittenAgain() throws {
        let store = SessionStore { _ in false }
        store.adopt([:])
        Self.receive("sid=1; Max-Age=200", store)
        let first = store.changes(at: Self.now)
        store.adopt(Self.written(first), written: first)
        func isDue(at time: Int64) -> Bool {
            Self.receive("sid=1; Max-Age=200", store, at: time)
            // It is in use nevertheless.
            #expect(store.session(Self.key)?.cookies.map(\.expires) == [time + 200])
            return !store.changes(at: time + 100).isEmpty
        }
        // A quarter of the remaining time is later.
        #expect(!isDue(at: Self.now + 39) && isDue(at: Self.now + 40))
        // Its end is a change.
        #expect(store.session(Self.key) != nil)
        let last = store.changes(at: Self.now + 240)
        #expect(last.lists[Self.key] == [.remove(Self.cookie("sid", "").identity)])
        #expect(store.session(Self.key) == nil)
    }
}
