// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a certificate, key or identity file could not be read or created.
package struct CertificateError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The bytes are malformed: the file's or the peer's fault.
        case malformed
        /// Well formed, but not supported.
        case unsupported
        /// The password does not open the file, or the file was altered: the two cannot be distinguished.
        case wrongPassword
        /// The file is encrypted, and no password was given.
        case passwordNeeded
        /// The private key does not belong to any of the certificates.
        case keyMismatch
        /// There is no private key.
        case noKey
        /// There is no certificate.
        case noCertificate
        /// The constraints or dates of the issuer do not permit it.
        case notPermitted
        /// OpenSSL, or this build of it, does not support the operation: the environment's fault.
        case unavailable
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    static let loneKey = CertificateError(.noCertificate, "this is a private key without a certificate")

    /// An error for `operation`, followed by the reasons from OpenSSL's error queue.
    static func openSSL(_ code: Code, _ operation: String) -> CertificateError {
        let reasons = OpenSSLErrors.drain()
        return CertificateError(code, reasons.isEmpty ? operation : "\(operation): \(reasons.joined(separator: "; "))")
    }
}
