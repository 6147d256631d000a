// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// An access token (RFC 6750, RFC 9449) that is redacted when printed, and wiped from memory when the last reference is
/// released.
public struct BearerToken: Equatable, Sendable {
    let secret: Secret
    /// As in ``TokenCredential/stored``.
    let stored: Secret
    /// The enrolled credential it belongs to; nil for a token that the program created.
    let reference: CredentialReference?

    init(_ secret: Secret, of reference: CredentialReference? = nil) {
        self.secret = secret
        self.reference = reference
        stored = secret
    }

    /// An enrolled token, which may be bound to a key.
    init(_ token: TokenCredential) {
        secret = token.token
        stored = token.stored
        reference = token.reference
    }

    /// Copies `text`, which is nil unless it has the syntax of RFC 6750 §2.1: letters, digits and `-._~+/`, then any
    /// number of `=`. The string itself is not wiped from memory, so keep it short-lived.
    public init?(_ text: String) {
        let secret = Secret(utf8: text)
        guard TokenCredential.isToken(secret) else { return nil }
        self.init(secret)
    }

    /// The token as text. The string is not wiped from memory, so keep it short-lived.
    ///
    /// Empty for a token that is bound to a key (RFC 9449): it is of no use alone, and must not be sent as a bearer
    /// token. A ``ChallengeExchange`` answers with it.
    public var text: String { stored == secret ? secret.utf8Text ?? "" : "" }

    /// Compares the bytes in constant time.
    public static func == (left: BearerToken, right: BearerToken) -> Bool { left.stored == right.stored }
}

extension BearerToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `(secret)`.
    public var description: String { "(secret)" }
    /// Always `(secret)`.
    public var debugDescription: String { description }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
