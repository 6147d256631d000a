// SPDX-License-Identifier: Apache-2.0

/// An error with a text for people. Reports, logs and the library's public error show `detail` and `hint` of any such
/// error.
package protocol DiagnosableError: Error, CustomStringConvertible {
    /// A sentence in lower case without a full stop that names the file or input at fault. Never contains a secret.
    var detail: String { get }
    /// The remedy, usually a command to type; nil if none is known.
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
