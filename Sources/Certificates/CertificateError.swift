// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a certificate, key or identity file was not taken or made. Never contains a secret; equality looks at the code
/// only.
package struct CertificateError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The bytes are not what they should be: the file's or the peer's fault.
        case malformed
        /// Well formed, but of a kind that is not taken here.
        case unsupported
        /// The password does not open the file, or the file was altered: the two cannot be told apart.
        case wrongPassword
        /// The file is encrypted and no password came with it.
        case passwordNeeded
        /// The private key belongs to none of the certificates.
        case keyMismatch
        /// There is no private key.
        case noKey
        /// There is no certificate.
        case noCertificate
        /// The interception authority's constraints, or its dates, do not allow it.
        case notPermitted
        /// OpenSSL, or this build of it, cannot do that: the environment's fault.
        case unavailable
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// An error with the reasons that OpenSSL left in its queue behind `operation`.
    static func openSSL(_ code: Code, _ operation: String) -> CertificateError {
        let reasons = OpenSSLErrors.drain()
        return CertificateError(code, reasons.isEmpty ? operation : "\(operation): \(reasons.joined(separator: "; "))")
    }
}
