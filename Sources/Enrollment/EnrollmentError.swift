// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why an enrolment came to nothing. Never contains a secret; equality looks at the code only.
package struct EnrollmentError: CodedError {
    package enum Code: Equatable, Sendable {
        /// An address, key, credential or identity that was given here cannot be used: our side's fault.
        case configuration
        /// Nobody answers there, or the name is unknown.
        case unreachable
        /// The server's certificate does not end in an explicit trust anchor, or is not for the host.
        case untrustedServer
        /// TLS came to nothing for a reason that is not a certificate's.
        case handshakeFailed
        /// The credential was rejected, or the server wants one, or an identity, and there is none.
        case unauthorized
        /// The server ended the connection with an alert about the identity that was shown (RFC 8446 §6.2).
        case identityRefused
        /// The server said no in HTTP: ``EnrollmentError/statusCode``.
        case refused
        /// What came is not what RFC 7030 has there.
        case malformedResponse
        /// A certificate came that is for another key, from another authority, out of date or for another purpose.
        case wrongCertificate
        /// The authority is no longer the one that was trusted, and the old one does not vouch for the new one.
        case authorityChanged
        /// The connection ended before the response was whole.
        case cut
        /// No whole response within the limit.
        case timedOut
        /// The task was cancelled.
        case cancelled
        /// The server kept saying "later" for longer than the caller waits.
        case pendingTooLong
        /// libcurl or OpenSSL, or this build of them, cannot do that: the environment's fault.
        case unavailable
    }

    /// What an answer of the server says no to.
    package enum Object: Equatable, Sendable {
        /// The certification request itself.
        case request
        /// The user name and password, which were sent.
        case credential
    }

    package let code: Code
    /// A short sentence for people; what the server sent is quoted in it, made printable and short.
    package let detail: String
    /// What to do about it, if that is known.
    package let hint: String?
    /// The status of the HTTP response, where one came.
    package let statusCode: Int?
    /// Seconds that the server asked to wait before a next try, at most ``ESTClient/longestRetryAfter``; nil where it
    /// did not say.
    package let retryAfter: Int64?
    /// What the server said no to, where it said that for good.
    package let rejects: Object?

    package init(
        _ code: Code, _ detail: String, hint: String? = nil, statusCode: Int? = nil, retryAfter: Int64? = nil,
        rejects: Object? = nil
    ) {
        self.code = code
        self.detail = detail
        self.hint = hint
        self.statusCode = statusCode
        self.retryAfter = retryAfter
        self.rejects = rejects
    }

    /// A later try may succeed with nothing changed on this side.
    package var isTransient: Bool {
        switch code {
        case .unreachable, .cut, .timedOut, .handshakeFailed: true
        case .refused: statusCode.map { $0 >= 500 || $0 == 429 || $0 == 408 } ?? false
        case .configuration, .untrustedServer, .unauthorized, .identityRefused, .malformedResponse, .wrongCertificate,
            .authorityChanged, .cancelled, .pendingTooLong, .unavailable:
            false
        }
    }
}
