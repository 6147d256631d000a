// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignCryptography

/// A password that is redacted when printed, and wiped from memory when the last reference is released.
public struct Password: Equatable, Sendable {
    package let secret: Secret
    /// The enrolled credential it belongs to; nil for a password that the program created.
    let reference: CredentialReference?

    init(_ secret: Secret, of reference: CredentialReference? = nil) {
        self.secret = secret
        self.reference = reference
    }

    /// Copies `text` in UTF-8. The string itself is not wiped from memory, so keep it short-lived.
    public init(_ text: String) {
        self.init(Secret(utf8: text))
    }

    /// Copies `bytes`.
    public init(bytes: some Collection<UInt8>) {
        self.init(Secret(bytes))
    }

    /// The password as text, or nil if it is not UTF-8. The string is not wiped from memory, so keep it short-lived.
    public var text: String? { secret.utf8Text }

    /// Calls `body` with the password's bytes, which are valid only during the call.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try secret.withBytes(body)
    }

    /// Compares the bytes in constant time.
    public static func == (left: Password, right: Password) -> Bool { left.secret == right.secret }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `(secret)`.
    public var description: String { "(secret)" }
    /// Always `(secret)`.
    public var debugDescription: String { description }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
