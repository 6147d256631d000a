// SPDX-License-Identifier: Apache-2.0

/// The cookies by which one host recognises a person, for all clients of a group.
package struct SharedSession: Equatable, Sendable {
    /// The identity of a session.
    package struct Key: Hashable, Comparable, Sendable {
        package let group: String
        /// Canonical, as `SitePolicy.HostName` writes it; an IPv6 address without brackets.
        package let host: String

        package init(group: String, host: String) {
            self.group = group
            self.host = host
        }

        package static func < (left: Key, right: Key) -> Bool {
            (left.group, left.host) < (right.group, right.host)
        }
    }

    /// A change to the cookies of a session.
    package enum Change: Equatable, Sendable {
        case set(Cookie)
        case remove(Cookie.Identity)

        package var identity: Cookie.Identity {
            switch self {
            case .set(let cookie): cookie.identity
            case .remove(let identity): identity
            }
        }
    }

    package let key: Key
    /// In the order in which they were first stored.
    package private(set) var cookies: [Cookie] = []

    package static let maximumCookies = 64
    /// The largest sum of ``Cookie/byteCount``: half of the limit of a request's head.
    package static let maximumBytes = 32 << 10
    /// How long a cookie without an expiry is kept.
    package static let sessionCookieSeconds: Int64 = 24 * 60 * 60

    package init(key: Key) {
        self.key = key
    }

    /// When a cookie was stored last; 0 without cookies.
    package var stored: Int64 { cookies.map(\.stored).max() ?? 0 }

    private var byteCount: Int { cookies.reduce(0) { $0 + $1.byteCount } }

    /// Why the session cannot be stored, as the end of "the session has"; nil if it can.
    package var fault: String? {
        if cookies.count > Self.maximumCookies { return "more than \(Self.maximumCookies) cookies" }
        if byteCount > Self.maximumBytes { return "more than \(Self.maximumBytes) bytes" }
        if Set(cookies.map(\.identity)).count < cookies.count { return "two cookies with one name, domain and path" }
        return cookies.lazy.compactMap { $0.fault(for: key.host) }.first.map { "a cookie with \($0)" }
    }

    /// Makes a change. Returns false, without a change, if the cookie cannot be stored or there is no room for it.
    @discardableResult
    package mutating func apply(_ change: Change) -> Bool {
        switch change {
        case .remove(let identity):
            guard let index = cookies.firstIndex(where: { $0.identity == identity }) else { return false }
            cookies.remove(at: index)
        case .set(let cookie):
            guard cookie.fault(for: key.host) == nil else { return false }
            let index = cookies.firstIndex { $0.identity == cookie.identity }
            let freed = index.map { cookies[$0].byteCount } ?? 0
            guard index != nil || cookies.count < Self.maximumCookies,
                byteCount - freed + cookie.byteCount <= Self.maximumBytes
            else { return false }
            if let index { cookies[index] = cookie } else { cookies.append(cookie) }
        }
        return true
    }

    /// The cookies that are no longer used at `now`, in seconds since 1970.
    package func expired(at now: Int64) -> [Cookie.Identity] {
        cookies.filter { $0.end <= now }.map(\.identity)
    }
}
