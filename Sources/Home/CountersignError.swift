// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// A fault in a home, or in running a proxy for it. Never contains a secret.
package struct CountersignError: CodedError {
    package enum Code: Equatable, Sendable {
        /// A file of the home has invalid contents.
        case configuration
        /// The system refused an operation on a file, socket or port.
        case environment
        /// No object has that name.
        case unknownName
        /// The name is in use.
        case nameInUse
        /// No server of this home is running.
        case notRunning
        /// A running server refused.
        case refused
        /// The passphrase does not open the vault.
        case wrongPassphrase
    }

    package let code: Code
    /// A short sentence, without a full stop, that names the faulty file or input.
    package let detail: String
    /// The remedy for the user.
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    /// `attempt`, followed by the description of the error number of the failed system call. Without a hint, the remedy
    /// is the usual one for this number.
    package static func system(_ number: Int32, _ attempt: String, hint: String? = nil) -> CountersignError {
        CountersignError(
            .environment, "\(attempt): \(String(cString: strerror(number)))",
            hint: hint ?? SystemFault.remedy(for: number))
    }
}

extension CountersignError {
    /// `there is no KIND "NAME"`; the hint lists the names that exist, or the command that adds the first.
    package static func unknown(
        _ kind: String, _ name: String, known: some Collection<String>, addedBy command: String
    ) -> CountersignError {
        unknown("there is no \(kind) \(name.debugDescription)", known: known, addedBy: command)
    }

    package static func unknown(
        _ detail: String, known: some Collection<String>, addedBy command: String
    ) -> CountersignError {
        CountersignError(
            .unknownName, detail,
            hint: known.isEmpty
                ? "there are none; `countersign \(command)` adds one"
                : "known names: \(known.sorted().joined(separator: ", "))")
    }
}
