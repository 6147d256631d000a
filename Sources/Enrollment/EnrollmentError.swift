// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why an enrolment failed.
package struct EnrollmentError: CodedError {
    package enum Code: Equatable, Sendable {
        /// An address, key, credential or identity from the configuration cannot be used: a configuration error.
        case configuration
        /// The host name is unknown, or no connection can be made.
        case unreachable
        /// The server's certificate does not chain to an explicit trust anchor, or is not for the host.
        case untrustedServer
        /// The TLS handshake failed for a reason other than a certificate.
        case handshakeFailed
        /// The credential was rejected, or the server requires a credential or an identity and none was given.
        case unauthorized
        /// The server closed the connection with an alert about the identity (RFC 8446 §6.2).
        case identityRefused
        /// The server ended the handshake in which the identity was presented, with an alert about something else than
        /// the certificate's validity, such as the kind of its key. The identity may work with other servers.
        case identityUnusable
        /// The server refused with an HTTP status: ``EnrollmentError/statusCode``.
        case refused
        /// The response does not conform to RFC 7030.
        case malformedResponse
        /// The issued certificate has another key, another issuer, wrong dates or another purpose.
        case wrongCertificate
        /// The server's CA has changed, and the trusted one does not vouch for the new one.
        case authorityChanged
        /// The connection closed before the response was complete.
        case cut
        /// There was no complete response within the time limit.
        case timedOut
        /// The task was cancelled.
        case cancelled
        /// The server kept answering 202 for longer than the caller waits.
        case pendingTooLong
        /// libcurl or OpenSSL, or this build of them, does not support the operation: the environment's fault.
        case unavailable
    }

    /// The object that a server's response rejects.
    package enum Object: Equatable, Sendable {
        /// The certification request itself.
        case request
        /// The user name and password that were sent.
        case credential
        /// The access token that was sent.
        case token
    }

    package let code: Code
    /// Quotes the server's response in printable characters, shortened.
    package let detail: String
    package let hint: String?
    /// The status of the HTTP response, if there was one.
    package let statusCode: Int?
    /// The seconds to wait before the next attempt, at most ``ESTClient/longestRetryAfter``; nil if the server did not
    /// say.
    package let retryAfter: Int64?
    /// The credential or request that the server has rejected for good; nil without one.
    package let rejects: Object?
    /// The connection ended without a reason while the server had yet to accept the identity. Some servers reject a
    /// certificate in this way.
    package let mayConcernIdentity: Bool

    package init(
        _ code: Code, _ detail: String, hint: String? = nil, statusCode: Int? = nil, retryAfter: Int64? = nil,
        rejects: Object? = nil, mayConcernIdentity: Bool = false
    ) {
        self.code = code
        self.detail = detail
        self.hint = hint
        self.statusCode = statusCode
        self.retryAfter = retryAfter
        self.rejects = rejects
        self.mayConcernIdentity = mayConcernIdentity
    }

    /// Whether a later attempt may succeed without a change on this side.
    package var isTransient: Bool {
        switch code {
        case .unreachable, .cut, .timedOut, .handshakeFailed: true
        case .refused: statusCode.map { $0 >= 500 || $0 == 429 || $0 == 408 } ?? false
        case .configuration, .untrustedServer, .unauthorized, .identityRefused, .identityUnusable, .malformedResponse,
            .wrongCertificate, .authorityChanged, .cancelled, .pendingTooLong, .unavailable:
            false
        }
    }
}
