// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A request for the status of one certificate (RFC 6960 §4.1), in the form that every responder supports (RFC 5019
/// §2.1): one certificate, identified with SHA-1, without nonce and signature. Responders sign in advance, so that a
/// nonce would usually be ignored; the dates in the response limit replays.
package enum OCSPRequest {
    /// In DER. Throws `malformed` if the issuer's name or key cannot be encoded.
    package static func make(
        for certificate: Certificate, issuedBy issuer: Certificate
    ) throws(CertificateError) -> [UInt8] {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let request = OCSP_REQUEST_new() else { throw .openSSL(.unavailable, "OCSP request") }
        defer { OCSP_REQUEST_free(request) }
        let isMade = certificate.withX509 { x509 in
            issuer.withX509 { issuer in
                guard let identifier = OCSP_cert_to_id(EVP_sha1(), x509, issuer) else { return false }
                guard OCSP_request_add0_id(request, identifier) != nil else {
                    OCSP_CERTID_free(identifier)
                    return false
                }
                return true
            }
        }
        let der = isMade ? derBytes { i2d_OCSP_REQUEST(request, $0) } : []
        guard !der.isEmpty else { throw .openSSL(.malformed, "no OCSP request can be made for \(certificate)") }
        return der
    }
}
