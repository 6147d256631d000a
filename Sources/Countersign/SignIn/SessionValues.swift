// SPDX-License-Identifier: Apache-2.0

package import CountersignCookies
package import CountersignCryptography

/// A cookie of a shared session without its value. Times are in seconds since 1970.
package struct ListedCookie: Equatable, Sendable, Codable {
    package let name: String
    package let domain: String
    package let isHostOnly: Bool
    package let path: String
    package let isSecure: Bool
    package let isHTTPOnly: Bool
    package let sameSite: Cookie.SameSite
    /// Nil if it ends with the browser's session.
    package let expires: Int64?
    package let stored: Int64

    package init(_ cookie: Cookie) {
        name = cookie.name
        domain = cookie.domain
        isHostOnly = cookie.isHostOnly
        path = cookie.path
        isSecure = cookie.isSecure
        isHTTPOnly = cookie.isHTTPOnly
        sameSite = cookie.sameSite
        expires = cookie.expires
        stored = cookie.stored
    }

    package var identity: Cookie.Identity {
        Cookie.Identity(name: name, domain: domain, isHostOnly: isHostOnly, path: path)
    }

    /// The cookie with its value.
    fileprivate func cookie(_ value: Secret) -> Cookie {
        Cookie(
            identity, value: value, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires,
            stored: stored)
    }
}

/// A shared session without the values of its cookies.
package struct ListedSession: Equatable, Sendable, Codable {
    package let group: String
    package let host: String
    package let cookies: [ListedCookie]

    package init(_ session: SharedSession) {
        group = session.key.group
        host = session.key.host
        cookies = session.cookies.map { ListedCookie($0) }
    }

    package var key: SharedSession.Key { SharedSession.Key(group: group, host: host) }
}

/// The values of a session's cookies as one secret: for each in their order, four bytes length and the value.
package enum SessionValues {
    package static func encoded(_ cookies: [Cookie]) -> Secret {
        Secret(count: cookies.reduce(0) { $0 + 4 + $1.value.count }) { room in
            var offset = 0
            for cookie in cookies {
                for shift in [24, 16, 8, 0] {
                    room[offset] = UInt8(truncatingIfNeeded: cookie.value.count >> shift)
                    offset += 1
                }
                cookie.value.withBytes { UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: $0) }
                offset += cookie.value.count
            }
        }
    }

    /// The cookies of `listed` with their values; nil if the secret does not have as many.
    static func decode(_ secret: Secret, of listed: [ListedCookie]) -> [Cookie]? {
        secret.withBytes { bytes in
            var rest = bytes[...]
            var cookies: [Cookie] = []
            for cookie in listed {
                guard rest.count >= 4 else { return nil }
                let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(4)
                guard rest.count >= count else { return nil }
                cookies.append(cookie.cookie(Secret(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
            return rest.isEmpty ? cookies : nil
        }
    }
}
