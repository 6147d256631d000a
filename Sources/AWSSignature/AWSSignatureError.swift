// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a request cannot be signed anew. The text names the part at fault and has no secret.
package struct AWSSignatureError: CodedError {
    package enum Code: Sendable {
        /// The client has not written a signature, or a chunk, as AWS documents it.
        case malformed
        /// The client signs in a way that cannot be repeated.
        case unsupported
        /// The client's time is not the present.
        case expired
        /// A chunk, or the trailers after the last one, are larger than what is kept in memory.
        case tooLarge
        /// The enrolled keys are not keys of AWS.
        case keys
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }
}
