// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography
import Synchronization

/// The cookies of a shared session in a window: those that it gets before its first page, and those that the session's
/// host has set in it.
package final class SharedCookies: Sendable {
    package let key: SharedSession.Key
    /// The names of the session's cookies.
    let names: [String]
    /// The stored cookies of the session.
    let stored: [Cookie]
    /// The window's latest report, with the time of the first report of each cookie's present value.
    private let reported = Mutex<[(cookie: WebViewCookie, since: Int64)]>([])

    /// A cookie that the vault has.
    package struct Known: Sendable {
        let sameSite: Cookie.SameSite
        /// In seconds since 1970.
        let stored: Int64

        package init(sameSite: Cookie.SameSite, stored: Int64) {
            self.sameSite = sameSite
            self.stored = stored
        }
    }

    /// `stored` is the session in the vault; nil without one, or if only the window's proxy may add it.
    package init(_ scope: SessionScope, stored: SharedSession?) {
        key = SharedSession.Key(group: scope.group, host: scope.host.text)
        names = scope.cookies
        self.stored = (stored?.cookies ?? []).filter { scope.cookies.contains($0.name) }
    }

    /// The cookies that the window gets. One with a domain is not among them: the window would send it to other hosts
    /// as well, and its proxy adds it to the requests to the session's host.
    var given: [WebViewCookie] { stored.filter(\.isHostOnly).compactMap { WebViewCookie($0) } }

    /// Takes a report of the window, which replaces the one before it. `now` is in seconds since 1970.
    func report(_ cookies: [WebViewCookie], at now: Int64) {
        reported.withLock { reported in
            let before = reported
            reported = cookies.map { cookie in (cookie, before.first { $0.cookie == cookie }?.since ?? now) }
        }
    }

    /// The window's final cookies that are new or changed, for the vault, without those that the vault has received
    /// later from elsewhere. `now` is in seconds since 1970, `isPublicSuffix` says whether anyone can register names
    /// below a domain, and `known` returns the vault's cookie.
    ///
    /// The window does not distinguish SameSite=None from a cookie without the attribute. Such a cookie counts as one
    /// without, which fewer requests get, unless the vault knows better.
    package func captured(
        at now: Int64, isPublicSuffix: (String) -> Bool, known: (Cookie.Identity) -> Known?
    ) -> [Cookie] {
        let given = given
        return reported.withLock(\.self).compactMap { cookie, since in
            guard names.contains(cookie.name), !given.contains(cookie),
                let stored = cookie.stored(for: key.host, at: now, isPublicSuffix, { known($0)?.sameSite }),
                known(stored.identity).map({ $0.stored <= since }) ?? true
            else { return nil }
            return stored
        }
    }
}

extension WebViewCookie {
    /// Nil if the value is not UTF-8, as the lines of the window's program are.
    fileprivate init?(_ cookie: Cookie) {
        guard cookie.value.utf8Text != nil else { return nil }
        let sameSite: SameSite =
            switch cookie.sameSite {
            case .none: .none
            case .lax, .unspecified: .lax
            case .strict: .strict
            }
        self.init(
            name: cookie.name, value: cookie.value, domain: cookie.isHostOnly ? cookie.domain : ".\(cookie.domain)",
            path: cookie.path, expires: cookie.expires, isSecure: cookie.isSecure, isHTTPOnly: cookie.isHTTPOnly,
            sameSite: sameSite)
    }

    /// The cookie as a session of `host` stores it; nil if it has expired, or is not one of that host.
    fileprivate func stored(
        for host: String, at now: Int64, _ isPublicSuffix: (String) -> Bool,
        _ known: (Cookie.Identity) -> Cookie.SameSite?
    ) -> Cookie? {
        if let expires, expires <= now { return nil }
        let isHostOnly = !domain.hasPrefix(".")
        let name = isHostOnly ? domain.lowercased() : String(domain.dropFirst()).lowercased()
        guard isHostOnly || !isPublicSuffix(name) else { return nil }
        let identity = Cookie.Identity(name: self.name, domain: name, isHostOnly: isHostOnly, path: path)
        let attribute: Cookie.SameSite =
            switch sameSite {
            case .strict: .strict
            case .lax: .lax
            case .none: isSecure && known(identity) == Cookie.SameSite.none ? .none : .unspecified
            }
        let cookie = Cookie(
            identity, value: value, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: attribute,
            expires: expires.map { min($0, now + SetCookieReader.longestLifetime) }, stored: now)
        return cookie.fault(for: host) == nil ? cookie : nil
    }
}
