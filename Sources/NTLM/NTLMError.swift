// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why an NTLM dialogue failed. Errors with the same code are equal; the detail is for display and contains no secret.
package struct NTLMError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The peer's bytes are not the expected message.
        case malformed
        /// The peer does not offer the options that NTLMv2 over HTTP needs, or chose another mechanism.
        case unsupported
        /// The peer chose Kerberos, or ended a negotiation in which NTLM alone was offered.
        case wantsTicket
        /// The peer ended the negotiation.
        case rejected
        /// The configured user name, password or target cannot be encoded in a message.
        case unusableCredential
        /// The caller's fault: a method was called out of order, or with random bytes of the wrong length.
        case outOfOrder
        /// The peer's response was not computed from the expected password.
        case wrongPassword
        /// The message integrity code, or SPNEGO's mechListMIC, is missing or does not match.
        case wrongMIC
        /// The response was computed for another TLS connection.
        case wrongChannelBinding
        /// The response was computed for another service.
        case wrongTargetName
    }

    package let code: Code
    /// A short sentence in lower case, without a full stop.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
