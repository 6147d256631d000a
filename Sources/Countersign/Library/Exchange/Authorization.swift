// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The value of an `Authorization` field that answers a challenge (RFC 9110 §11.6.2). It is secret, and redacted when
/// printed.
public struct Authorization: Equatable, Sendable {
    private let made: AuthorizationField

    init(_ made: AuthorizationField) {
        self.made = made
    }

    /// `Basic`, `Bearer`, `Digest`, `DPoP`, `NTLM` or `Negotiate`.
    public var scheme: String { made.scheme }

    /// The field's value. The string is not wiped from memory, so keep it short-lived.
    public var fieldValue: String { made.fieldValue }

    /// The value of the field `DPoP` that must go with it (RFC 9449 §7.1); nil for any other scheme. It is for one
    /// request: each repetition has another.
    public var proof: String? { made.proof?.utf8Text }
}

extension Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme, with the rest redacted.
    public var description: String { made.description }
    /// The scheme, with the rest redacted.
    public var debugDescription: String { description }
    /// Contains only the scheme.
    public var customMirror: Mirror { Mirror(self, children: ["scheme": scheme]) }
}
