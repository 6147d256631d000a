// SPDX-License-Identifier: Apache-2.0

/// A way to get an access token without a person. Each renewal is a new grant: there is no refresh token.
package enum MachineGrant: Sendable, Equatable {
    /// The client asks for itself (RFC 6749 §4.4).
    case clientCredentials
    /// With a JWT that another issuer has written into this file (RFC 7523 §2.1).
    case assertion(file: String)
    /// Another token is exchanged (RFC 8693 §2.1).
    case exchange(Exchange)

    package struct Exchange: Sendable, Equatable {
        /// The file with the subject token.
        package let file: String
        package let subjectTokenType: String
        package let audience: String?
        package let requestedTokenType: String?

        package init(file: String, subjectTokenType: String, audience: String?, requestedTokenType: String?) {
            self.file = file
            self.subjectTokenType = subjectTokenType
            self.audience = audience
            self.requestedTokenType = requestedTokenType
        }
    }

    /// The values of `grant_type`.
    package enum Name: String, CaseIterable, Sendable {
        case clientCredentials = "client_credentials"
        case assertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    }

    /// The value of `grant_type`.
    package var name: String {
        switch self {
        case .clientCredentials: Name.clientCredentials.rawValue
        case .assertion: Name.assertion.rawValue
        case .exchange: Name.exchange.rawValue
        }
    }

    /// The file that is read for each grant; nil without one.
    package var file: String? {
        switch self {
        case .clientCredentials: nil
        case .assertion(let file): file
        case .exchange(let exchange): exchange.file
        }
    }

    /// Whether the file contains a JWT.
    package var readsJWT: Bool {
        switch self {
        case .clientCredentials: false
        case .assertion: true
        case .exchange(let exchange): exchange.subjectTokenType == Self.jwtType
        }
    }

    /// RFC 8693 §3.
    package static let jwtType = "urn:ietf:params:oauth:token-type:jwt"
}
