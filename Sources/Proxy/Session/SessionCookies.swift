// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignCookies
import CountersignCryptography
import CountersignHTTP1
import Glibc

/// The value of a Cookie field: the client's own cookies, then others.
struct CookieField: SecretFieldValue {
    private let own: [ArraySlice<UInt8>]
    private let cookies: [Cookie]

    init(own: [ArraySlice<UInt8>], _ cookies: [Cookie]) {
        self.own = own.filter { !$0.isEmpty }
        self.cookies = cookies
    }

    var byteCount: Int {
        own.reduce(0) { $0 + $1.count + 2 } + cookies.reduce(0) { $0 + $1.name.utf8.count + $1.value.count + 3 }
    }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        func append(_ text: StaticString) { text.withUTF8Buffer { write(UnsafeRawBufferPointer($0)) } }
        var isFirst = true
        func separate() {
            if !isFirst { append("; ") }
            isFirst = false
        }
        for value in own {
            separate()
            value.withUnsafeBytes { write($0) }
        }
        for cookie in cookies {
            separate()
            var name = cookie.name
            name.withUTF8 { write(UnsafeRawBufferPointer($0)) }
            append("=")
            cookie.value.withBytes { write($0) }
        }
    }
}

/// A route's use of the session that its site's line shares. An object, so that a route without one pays for a
/// comparison with nil only.
final class SharedSessionUse {
    let key: SharedSession.Key
    /// The names of the session's cookies.
    let names: [String]
    let store: SessionStore

    init(key: SharedSession.Key, names: [String], store: SessionStore) {
        self.key = key
        self.names = names
        self.store = store
    }
}

extension ExchangeDriver {
    /// The cause by which the session's cookies are chosen, if this exchange may use the session of the site's line:
    /// the origin is trusted, the client does not authenticate itself, belongs to the home's owner or has the home's
    /// token, and the cause of the request may use a credential.
    private var cookieCause: CookieCause? {
        guard mayBeAnswered, acquisition.trust.answers, isGroupMember, session.isStillSameUser() else { return nil }
        guard let foreignCause else { return .sameSite }
        return foreignCause.cause.cookies(foreignCause.verdict)
    }

    /// Two fields of one name count as a value that nothing permits.
    func value(_ name: String) -> String? {
        let values = head.fields.values(named: name)
        return values.count > 1 ? values.joined(separator: ", ") : values.first
    }

    var isGroupMember: Bool {
        session.hasToken || session.process.uid == getuid()
    }

    /// The cookies of the request with those of the shared session; nil if nothing is added.
    func sessionCookies(_ use: SharedSessionUse) -> CookieField? {
        let cookies = sharedCookies(use)
        return cookies.isEmpty ? nil : CookieField(own: sentCookies, cookies)
    }

    /// The cookies of the shared session that the request gets.
    func sharedCookies(_ use: SharedSessionUse) -> [Cookie] {
        guard let found = use.store.session(use.key), let cause = cookieCause else { return [] }
        return found.cookies(
            path: path, cause: cause, sent: SentCookies(sentCookies), now: services.shared.wallClock()
        ).filter { use.names.contains($0.name) }
    }

    /// The values of the request's own Cookie fields.
    var sentCookies: [ArraySlice<UInt8>] {
        head.fields.lines.filter { $0.known == .cookie }.map { head.fields.valueBytes(of: $0) }
    }

    /// Takes the session's cookies from a response that is delivered.
    func noteSessionCookies(_ fields: FieldLines, _ use: SharedSessionUse) {
        guard fields.contains(.setCookie), let cause = cookieCause else { return }
        let values = fields.lines.filter { $0.known == .setCookie }.map { fields.valueBytes(of: $0) }
        use.store.received(
            values, named: use.names, path: path, cause: cause, sent: SentCookies(sentCookies), for: use.key,
            now: services.shared.wallClock())
    }
}
