// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// What a challenge is answered with.
public enum Credential: Equatable, Sendable {
    /// A user name, with the domain of the site's line before it where that has one (`ACME\jdoe`), and the password.
    case password(user: String, Password)
    /// A client certificate with its key, for TLS.
    case identity(ClientIdentity)

    /// The enrolled password that it is, if it is one.
    var reference: CredentialReference? {
        if case .password(_, let password) = self { password.reference } else { nil }
    }
}
