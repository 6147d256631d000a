// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// A certification path from a certificate to a trust anchor (RFC 5280 §6), built by OpenSSL from the given
/// certificates.
struct CertificationPath {
    enum Purpose {
        /// The certificate is a certification authority's.
        case certificationAuthority
        /// The certificate is for TLS clients.
        case client

        fileprivate var identifier: Int32 {
            switch self {
            case .certificationAuthority: X509_PURPOSE_ANY
            case .client: X509_PURPOSE_SSL_CLIENT
            }
        }
    }

    /// The certificate, its issuers and the anchor.
    let certificates: [Certificate]

    /// Throws OpenSSL's reason if there is no valid path at `time`, in seconds since 1970.
    init(
        of certificate: Certificate, purpose: Purpose, through others: [Certificate], to anchors: TrustAnchors,
        at time: Int64
    ) throws(CertificateError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = X509_STORE_CTX_new(), let untrusted = OPENSSL_sk_new_null() else {
            throw CertificateError(.unavailable, "out of memory")
        }
        defer {
            X509_STORE_CTX_free(context)
            OPENSSL_sk_free(untrusted)
        }
        for other in others { _ = other.withX509 { OPENSSL_sk_push(untrusted, UnsafeRawPointer($0)) } }
        let started = anchors.withStore { store in
            certificate.withX509 { X509_STORE_CTX_init(context, store, $0, untrusted) }
        }
        guard started == 1, let parameters = X509_STORE_CTX_get0_param(context),
            X509_VERIFY_PARAM_set_purpose(parameters, purpose.identifier) == 1
        else { throw CertificateError(.unavailable, "the certification path cannot be checked") }
        X509_VERIFY_PARAM_set_time(parameters, time_t(time))
        X509_VERIFY_PARAM_set_depth(parameters, ChainVerifier.maximumDepth)
        let verified = withExtendedLifetime(others) { X509_verify_cert(context) }
        guard verified == 1, let built = X509_STORE_CTX_get0_chain(context) else {
            let reason = X509_STORE_CTX_get_error(context)
            throw CertificateError(.notPermitted, String(cString: X509_verify_cert_error_string(Int(reason))))
        }
        certificates = (0..<max(0, OPENSSL_sk_num(built))).compactMap { index in
            OPENSSL_sk_value(built, index).map { Certificate(retaining: OpaquePointer($0)) }
        }
    }
}

extension Certificate {
    /// Whether the certificate is signed with its own key. Verifies the signature.
    package var isSelfSigned: Bool {
        defer { ERR_clear_error() }
        return withX509 { X509_self_signed($0, 1) } == 1
    }
}
