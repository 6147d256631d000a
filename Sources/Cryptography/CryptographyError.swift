// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A failed operation of OpenSSL, with the reasons from its error queue.
package struct CryptographyError: CodedError {
    package enum Code: Equatable, Sendable {
        /// OpenSSL, or this build of it, does not support the operation: the environment's fault.
        case unavailable
        /// An authenticated decryption failed: the wrong key, or altered bytes.
        case authenticationFailed
        /// A length or parameter that the algorithm does not accept.
        case invalidParameter
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ operation: String) {
        self.code = code
        let reasons = OpenSSLErrors.drain()
        self.detail = reasons.isEmpty ? operation : "\(operation): \(reasons.joined(separator: "; "))"
    }
}

/// The calling thread's OpenSSL error queue.
package enum OpenSSLErrors {
    /// Removes all entries from the queue and returns their reasons, oldest first.
    package static func drain() -> [String] {
        var reasons: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return reasons }
            if let reason = ERR_reason_error_string(code) {
                reasons.append(String(cString: reason))
            } else {
                reasons.append("error \(String(code, radix: 16))")
            }
        }
    }
}
