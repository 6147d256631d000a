// SPDX-License-Identifier: Apache-2.0

/// An error with a text for people. Reports, logs and the library's public error show `detail` and `hint` of any such
/// error.
package protocol DiagnosableError: Error, CustomStringConvertible {
    /// What happened, to what: lower case, no full stop, never a secret.
    var detail: String { get }
    /// What the person can do about it, usually a command to type.
    var hint: String? { get }
}

extension DiagnosableError {
    package var hint: String? { nil }

    package var description: String { detail }
}

/// The shape of a module's own error: a code that callers and tests compare, and a text that may change without
/// breaking them.
package protocol CodedError: DiagnosableError, Equatable {
    associatedtype Code: Equatable, Sendable

    var code: Code { get }
}

extension CodedError {
    /// Compares the codes only.
    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }
}
