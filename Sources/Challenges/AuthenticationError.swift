// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a challenge could not be read, or could not be answered. Never contains a secret.
package struct AuthenticationError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The peer's fault: a `WWW-Authenticate` value that RFC 9110 §11.6.1 does not derive.
        case unparsableChallenge
        /// The peer's fault: more than ``ChallengeParser/maximumBytes`` of challenges.
        case challengeTooLong
        /// The configuration's fault: a user name or password that the scheme cannot carry (RFC 7617 §2).
        case unusableCredential
    }

    package let code: Code
    /// Which field and byte, or which part of the credential.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
