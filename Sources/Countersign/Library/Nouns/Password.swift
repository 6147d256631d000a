// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// A password that says nothing of itself when it is printed, and is wiped from memory when nobody holds it any more.
public struct Password: Equatable, Sendable {
    let secret: Secret
    /// The enrolled credential that it belongs to; nil for one that the program made itself.
    let reference: CredentialReference?

    init(_ secret: Secret, of reference: CredentialReference? = nil) {
        self.secret = secret
        self.reference = reference
    }

    /// A copy of `text` in UTF-8. The string itself is an ordinary one: keep it short-lived.
    public init(_ text: String) {
        self.init(Secret(utf8: text))
    }

    /// A copy of `bytes`.
    public init(bytes: some Collection<UInt8>) {
        self.init(Secret(bytes))
    }

    /// The password as text, or nil when it is not UTF-8. The string is an ordinary one: keep it short-lived.
    public var text: String? { secret.utf8Text }

    /// The bytes, for as long as `body` runs.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try secret.withBytes(body)
    }

    /// The same bytes, compared in constant time.
    public static func == (left: Password, right: Password) -> Bool { left.secret == right.secret }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `(secret)`.
    public var description: String { "(secret)" }
    /// Always `(secret)`.
    public var debugDescription: String { description }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
