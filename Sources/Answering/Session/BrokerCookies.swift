// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Gets the header with which the identity broker of the machine signs a person in at Microsoft's pages.
package struct BrokerCookies: Sendable {
    package enum Outcome: Sendable, Equatable {
        /// The header's value: visible ASCII characters.
        case cookie(Secret)
        /// No cookie, for a reason that the client and the log show.
        case unavailable(reason: String)
    }

    /// The account at the identity broker that signs a person in.
    package enum Account: Sendable, Hashable {
        /// The only one that the broker has.
        case only
        /// That of the sign-in called `name`. The broker knows the account by `subject`; `identifier` is another one
        /// for each sign-in of that name.
        case signIn(name: String, subject: String, identifier: String)
        /// None, for a reason that is shown to the client and in the log.
        case none(reason: String)
    }

    /// A navigation request that the header is for.
    package struct Request: Sendable, Equatable {
        /// With its query.
        package let url: String
        /// The query has a nonce (`sso_nonce`), so that the header is for this URL alone.
        package let hasNonce: Bool
        package let account: Account

        package init(url: String, hasNonce: Bool, account: Account) {
            self.url = url
            self.hasNonce = hasNonce
            self.account = account
        }
    }

    /// Calls its last argument once, on any thread, in time for the request that waits. Must not block an event loop.
    package let get: @Sendable (Request, @escaping @Sendable (Outcome) -> Void) -> Void

    package init(get: @escaping @Sendable (Request, @escaping @Sendable (Outcome) -> Void) -> Void) { self.get = get }

    /// For a program without a broker.
    package static let none = BrokerCookies { _, done in
        done(.unavailable(reason: "this program does not use an identity broker"))
    }
}
