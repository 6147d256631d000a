// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// What OpenSSL refused, with the reasons it left in its error queue. Never contains a secret.
package struct CryptographyError: CodedError {
    package enum Code: Equatable, Sendable {
        /// OpenSSL, or this build of it, cannot do that: the environment's fault.
        case unavailable
        /// An authenticated decryption failed: the wrong key, or altered bytes.
        case authenticationFailed
        /// A length or parameter that the algorithm does not take.
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
    /// Takes every entry off the queue and gives their reasons, oldest first.
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
