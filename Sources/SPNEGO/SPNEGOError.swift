// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a token cannot be read. Errors with the same code are equal.
package struct SPNEGOError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The bytes are not a token in DER, or the token is too long.
        case malformed
        /// A token of another mechanism.
        case unsupported
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
