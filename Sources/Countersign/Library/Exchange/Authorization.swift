// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The value of an `Authorization` field that answers a challenge (RFC 9110 §11.6.2). It is a secret, and prints as
/// one.
public struct Authorization: Equatable, Sendable {
    private let made: AuthorizationField

    init(_ made: AuthorizationField) {
        self.made = made
    }

    /// `Basic`, `NTLM` or `Negotiate`.
    public var scheme: String { made.scheme }

    /// What stands after `Authorization: `. The string is an ordinary one: keep it short-lived.
    public var fieldValue: String { made.fieldValue }
}

extension Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme, and that the rest is a secret.
    public var description: String { made.description }
    /// The scheme, and that the rest is a secret.
    public var debugDescription: String { description }
    /// The scheme alone.
    public var customMirror: Mirror { Mirror(self, children: ["scheme": scheme]) }
}
