// SPDX-License-Identifier: Apache-2.0

/// What a credential opens (RFC 9110 §11.5): an origin, a realm where the scheme has one, and how it is asked for.
package struct AuthenticationSpace: Hashable, Sendable {
    /// How the origin asks, as Foundation's `authenticationMethod` would say it.
    package enum Method: String, Hashable, Sendable {
        case clientCertificate
        case ntlm
        case basic

        /// The word of the allowed-sites list that permits it.
        package var scheme: AuthenticationScheme {
            switch self {
            case .clientCertificate: .certificate
            case .ntlm: .ntlm
            case .basic: .basic
            }
        }
    }

    package let origin: Origin
    /// As the origin wrote it; nil where there is none (NTLM, client certificates).
    package let realm: String?
    package let method: Method

    package init(origin: Origin, realm: String?, method: Method) {
        self.origin = origin
        self.realm = realm
        self.method = method
    }
}
