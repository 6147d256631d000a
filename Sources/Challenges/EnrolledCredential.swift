// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A user name and password as they were enrolled.
package struct PasswordCredential: Equatable, Sendable {
    /// The name it was enrolled under, `enrollment` unless the person chose another.
    package let name: String
    /// `jdoe`, `ACME\jdoe` or `jdoe@acme.example`.
    package let user: String
    package let password: Secret
    /// Changes whenever the credential is enrolled again, so that what was learned of the old one is forgotten.
    package let generation: UInt64

    package init(name: String, user: String, password: Secret, generation: UInt64) {
        self.name = name
        self.user = user
        self.password = password
        self.generation = generation
    }
}

/// What a challenge is answered with. An identity travels by name here: its key stays with the TLS room.
package enum EnrolledCredential: Equatable, Sendable {
    case password(PasswordCredential)
    case identity(named: String)
}
