// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why an NTLM dialogue cannot go on. Two errors are equal when their codes are; the detail is for people and holds no
/// secret.
package struct NTLMError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The peer's bytes are not the message that is due.
        case malformed
        /// The peer does not offer what NTLMv2 over HTTP needs, or wants another mechanism.
        case unsupported
        /// The peer ended the negotiation.
        case rejected
        /// The configured user name, password or target cannot be put into a message.
        case unusableCredential
        /// A call came out of turn, or with random bytes of the wrong length: the caller's fault.
        case outOfOrder
        /// The password behind the peer's response is not the one it was verified against.
        case wrongPassword
        /// The message integrity code, or SPNEGO's mechListMIC, is missing or was made over other bytes.
        case wrongMIC
        /// The response was made for another TLS connection.
        case wrongChannelBinding
        /// The response was made for another service.
        case wrongTargetName
    }

    package let code: Code
    /// Lower case, no full stop.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
