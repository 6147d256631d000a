// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The cause of a request, on which its cookies depend (RFC 6265bis §5.2).
package enum CookieCause: Equatable, Sendable {
    /// The person, a page of the same site, or a client that is not a browser.
    case sameSite
    /// A page of another site. `isSafeNavigation`: it leads the browser to the site, with GET or HEAD.
    case crossSite(isSafeNavigation: Bool)

    /// Whether the request gets a cookie with this attribute (RFC 6265bis §5.8.3), and its response may change one.
    package func permits(_ sameSite: Cookie.SameSite) -> Bool {
        switch self {
        case .sameSite: true
        case .crossSite(let isSafeNavigation):
            switch sameSite {
            case .none: true
            case .lax, .unspecified: isSafeNavigation
            case .strict: false
            }
        }
    }
}

/// The values of the cookies that a client has sent of its own.
package struct SentCookies: Sendable {
    private let pairs: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)]

    /// `fields` are the values of the request's Cookie fields.
    package init(_ fields: [ArraySlice<UInt8>] = []) {
        pairs = fields.flatMap { $0.split(separator: UInt8(ascii: ";")) }.map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            return (SetCookieReader.trimmed(name), SetCookieReader.trimmed(pair[name.endIndex...].dropFirst()))
        }
    }

    package func contains(_ name: String) -> Bool { pairs.contains { $0.name.elementsEqual(name.utf8) } }

    package func values(of name: String) -> [Secret] {
        pairs.filter { $0.name.elementsEqual(name.utf8) }.map { Secret($0.value) }
    }
}

extension SharedSession {
    /// The cookies for a request to the session's host over TLS, in the order in which they are sent: those with longer
    /// paths first (RFC 6265 §5.4). `path` may have a query. None of the names in `sent` is added. `now` is in seconds
    /// since 1970.
    package func cookies(
        path: some Collection<UInt8>, cause: CookieCause, sent: SentCookies, now: Int64
    ) -> [Cookie] {
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        return cookies.filter { cookie in
            cookie.end > now && cause.permits(cookie.sameSite) && cookie.covers(path: path)
                && !sent.contains(cookie.name)
        }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Whether a response to a request of this cause, which had the cookies in `sent`, may make the change. The request
    /// must be one that gets the cookie, the old one and the new one. If the client has its own session, with another
    /// value, then the response to it neither ends the shared one nor puts the client's in its place.
    package func permits(_ received: ReceivedChange, cause: CookieCause, sent: SentCookies) -> Bool {
        let identity = received.change.identity
        let known = cookies.first { $0.identity == identity }
        guard cause.permits(received.sameSite), known.map({ cause.permits($0.sameSite) }) ?? true else { return false }
        let own = sent.values(of: identity.name)
        let shared = cookies.filter { $0.name == identity.name }.map(\.value)
        guard !own.isEmpty, !shared.isEmpty, !own.allSatisfy(shared.contains) else { return true }
        switch received.change {
        case .remove: return false
        case .set(let cookie): return !own.contains(cookie.value)
        }
    }
}
