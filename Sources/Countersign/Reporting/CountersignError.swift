// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Why the home, or the proxy over it, cannot be used as it is. Never contains a secret; equality looks at the code only.
package struct CountersignError: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Code: Equatable, Sendable {
        /// A file of the home does not say what it should.
        case configuration
        /// The system does not let the process do that: a file, a socket, a port.
        case environment
        /// There is nothing of that name.
        case unknownName
        /// There is something of that name already.
        case nameInUse
        /// No server of this home answers.
        case notRunning
        /// A running server refused.
        case refused
    }

    package let code: Code
    /// A short sentence without a full stop that names the file or input at fault.
    package let detail: String
    /// What the person can do about it.
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    /// The failed system call's reason behind what was tried.
    static func system(_ number: Int32, _ attempt: String, hint: String? = nil) -> CountersignError {
        CountersignError(.environment, "\(attempt): \(String(cString: strerror(number)))", hint: hint)
    }

    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    package var description: String { detail }
}
