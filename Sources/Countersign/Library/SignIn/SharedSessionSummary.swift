// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A session at one host that the clients of a group share, without the values of its cookies.
public struct SharedSessionSummary: Equatable, Sendable {
    /// A cookie of the session.
    public struct Cookie: Equatable, Sendable {
        /// Its name.
        public let name: String
        /// When it expires; nil for a cookie of the browser session, which is kept for a day.
        public let expires: Date?
        /// When it was stored.
        public let stored: Date

        /// Creates a cookie, for the tests of a program.
        public init(name: String, expires: Date?, stored: Date) {
            self.name = name
            self.expires = expires
            self.stored = stored
        }
    }

    /// The group.
    public let group: String
    /// The only host that gets the cookies.
    public let host: String
    /// At least one.
    public let cookies: [Cookie]

    /// Creates a summary, for the tests of a program.
    public init(group: String, host: String, cookies: [Cookie]) {
        self.group = group
        self.host = host
        self.cookies = cookies
    }

    init(_ session: ListedSession) {
        self.init(
            group: session.group, host: session.host,
            cookies: session.cookies.map { cookie in
                Cookie(
                    name: cookie.name,
                    expires: cookie.expires.map { Date(timeIntervalSince1970: TimeInterval($0)) },
                    stored: Date(timeIntervalSince1970: TimeInterval(cookie.stored)))
            })
    }
}
