// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// The data and the behaviour of a ``LocalIssuer``.
package struct IssuerSettings: Sendable {
    /// A person who can sign in.
    package struct Account: Sendable, Equatable {
        /// The claim `sub`.
        package var subject: String
        /// The claim `preferred_username`, and the name on the login page.
        package var name: String
        package var password: Secret

        package init(subject: String, name: String, password: Secret) {
            self.subject = subject
            self.name = name
            self.password = password
        }
    }

    /// How people sign in.
    package enum Interaction: Sendable {
        /// On a page that asks for name and password. `isFilledIn`: both are in the form already.
        case page(isFilledIn: Bool)
        /// Anyone who opens the authorization page is the account's person, and every device code is confirmed.
        case automatic
    }

    /// The only client, which is public (RFC 6749 §2.1).
    package var clientIdentifier: String
    /// A loopback URI without a port permits every port (RFC 8252 §7.3).
    package var redirects: [RedirectURI]
    package var account: Account
    package var interaction: Interaction
    /// Others that a client asks for are not granted. `offline_access` gives a refresh token.
    package var scopes: [String] = ["openid", "profile", "offline_access", "api"]
    /// How long an access token is valid.
    package var accessTokenSeconds: Int64 = 300
    /// How long to wait between two polls of a device (RFC 8628 §3.2).
    package var pollSeconds: Int64 = 5
    /// Every authorization request must be pushed (RFC 9126 §5).
    package var requiresPushedAuthorization = false

    package init(
        clientIdentifier: String, redirects: [RedirectURI], account: Account, interaction: Interaction
    ) {
        self.clientIdentifier = clientIdentifier
        self.redirects = redirects
        self.account = account
        self.interaction = interaction
    }
}
