// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a challenge cannot be parsed or answered. Never contains a secret.
package struct AuthenticationError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The peer's fault: a challenge field does not match the grammar of RFC 9110 §11.6.1.
        case unparsableChallenge
        /// The peer's fault: the challenges are longer than ``ChallengeParser/maximumBytes``.
        case challengeTooLong
        /// The configuration's fault: the scheme cannot carry the user name or password (RFC 7617 §2).
        case unusableCredential
        /// The challenge asks for something that is not implemented, such as an unknown algorithm.
        case unsupportedChallenge
        /// The input for a token is missing, such as a Kerberos ticket, and no server has rejected anything. A weaker
        /// scheme may answer.
        case unavailable
        /// A token could not be computed or verified.
        case tokenFailed
        /// The same, because the server refuses NTLM in Negotiate and wants a Kerberos ticket.
        case wantsTicket
    }

    package let code: Code
    /// Which field and byte, or which part of the credential.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// Nothing has been sent for which a server could refuse the credential, so a weaker scheme may answer.
    var isUnavailable: Bool { code != .tokenFailed && code != .wantsTicket }

    package var refusal: Refusal {
        let cause: Refusal.Cause =
            switch code {
            case .unavailable: .noTicket
            case .wantsTicket: .wantsTicket
            case .unusableCredential: .noCredential
            case .unparsableChallenge, .challengeTooLong, .unsupportedChallenge, .tokenFailed: .other
            }
        return Refusal(cause, detail)
    }

    /// OpenSSL's configuration, for example a restriction to FIPS 140, leaves out a function that `name` needs.
    package static func missing(_ function: Digest, for name: String) -> Self {
        let function = function.rawValue.uppercased()
        return Self(.unsupportedChallenge, "\(name) needs \(function), which OpenSSL does not offer here")
    }
}
