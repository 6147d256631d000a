// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The answer to a challenge.
public enum Credential: Equatable, Sendable {
    /// A password and a user name, qualified by the domain of the site's line if it has one (`ACME\jdoe`).
    case password(user: String, Password)
    /// A bearer token.
    case token(BearerToken)
    /// A client certificate with its private key, for TLS.
    case identity(ClientIdentity)

    /// A reference to the enrolled credential, if this is one.
    var reference: CredentialReference? {
        switch self {
        case .password(_, let password): password.reference
        case .token(let token): token.reference
        case .identity: nil
        }
    }
}
