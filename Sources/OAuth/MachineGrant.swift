// SPDX-License-Identifier: Apache-2.0

/// A way to get an access token without a person. Each renewal is a new grant: there is no refresh token.
package enum MachineGrant: Sendable, Equatable {
    /// The client asks for itself (RFC 6749 §4.4).
    case clientCredentials
    /// With a JWT that another issuer has written into this file (RFC 7523 §2.1).
    case assertion(file: String)
    /// With a JWT that the client's own key signs (RFC 7523 §2.1), as a service account of Google does.
    case signedAssertion(SignedAssertion)
    /// A GitHub App asks for a token of one of its installations.
    case installation(Installation)
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

    package struct SignedAssertion: Sendable, Equatable {
        /// The person in whose name the client acts; nil for itself.
        package let subject: String?
        /// The `kid` under which the provider knows the key; nil for none.
        package let keyIdentifier: String?
        /// Nil for the token endpoint.
        package let audience: String?

        package init(subject: String? = nil, keyIdentifier: String? = nil, audience: String? = nil) {
            self.subject = subject
            self.keyIdentifier = keyIdentifier
            self.audience = audience
        }
    }

    /// The limits of the token. Without any, it is for all that the installation may do.
    package struct Installation: Sendable, Equatable {
        /// The names of repositories, without their owner.
        package let repositories: [String]
        /// Such as `contents` to `read`, in the order of the request.
        package let permissions: [Permission]

        package struct Permission: Sendable, Equatable {
            package let name: String
            package let level: String

            package init(_ name: String, _ level: String) {
                self.name = name
                self.level = level
            }
        }

        package init(repositories: [String] = [], permissions: [Permission] = []) {
            self.repositories = repositories
            self.permissions = permissions
        }
    }

    /// The values of `grant_type`.
    package enum Name: String, CaseIterable, Sendable {
        case clientCredentials = "client_credentials"
        case assertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
        /// Not one of OAuth's.
        case installation = "github_app_installation"
    }

    /// The value of `grant_type`.
    package var name: String {
        switch self {
        case .clientCredentials: Name.clientCredentials.rawValue
        case .assertion, .signedAssertion: Name.assertion.rawValue
        case .exchange: Name.exchange.rawValue
        case .installation: Name.installation.rawValue
        }
    }

    /// The file that is read for each grant; nil without one.
    package var file: String? {
        switch self {
        case .clientCredentials, .signedAssertion, .installation: nil
        case .assertion(let file): file
        case .exchange(let exchange): exchange.file
        }
    }

    /// Whether the file contains a JWT.
    package var readsJWT: Bool {
        switch self {
        case .clientCredentials, .signedAssertion, .installation: false
        case .assertion: true
        case .exchange(let exchange): exchange.subjectTokenType == Self.jwtType
        }
    }

    /// Whether the client signs a ``GrantAssertion`` with its own key.
    package var signs: Bool {
        switch self {
        case .signedAssertion, .installation: true
        case .clientCredentials, .assertion, .exchange: false
        }
    }

    /// RFC 8693 §3.
    package static let jwtType = "urn:ietf:params:oauth:token-type:jwt"
}
