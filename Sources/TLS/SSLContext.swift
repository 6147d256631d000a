// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// The settings that clients and servers share: TLS 1.2 and 1.3, AEAD with ephemeral keys, no compression, no early
/// data, and no session cache in OpenSSL.
///
/// `nonisolated(unsafe)` is safe here: only the initialisers of the two contexts modify the SSL_CTX, and OpenSSL locks
/// it for every use after that.
final class SSLContext: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer

    /// The lowest and the highest protocol version.
    typealias Versions = ClosedRange<Int32>
    static let versions: Versions = TLS1_2_VERSION...TLS1_3_VERSION

    private static let suites12 = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
    private static let suites13 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let groups = "X25519:P-256:P-384"
    private static let signatures = [
        "ECDSA+SHA256", "RSA-PSS+SHA256", "RSA+SHA256", "ed25519", "ECDSA+SHA384", "RSA-PSS+SHA384", "RSA+SHA384",
        "ECDSA+SHA512", "RSA-PSS+SHA512", "RSA+SHA512", "rsa_pss_pss_sha256", "rsa_pss_pss_sha384",
        "rsa_pss_pss_sha512",
    ].joined(separator: ":")

    init(method: OpaquePointer?, versions: Versions) throws(TLSError) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(method) else { throw .drained(.configuration, "TLS context") }
        self.pointer = pointer
        SSL_CTX_set_options(pointer, csn_SSL_OP_NO_COMPRESSION)
        csn_SSL_CTX_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        csn_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        guard csn_SSL_CTX_set_min_proto_version(pointer, versions.lowerBound) == 1,
            csn_SSL_CTX_set_max_proto_version(pointer, versions.upperBound) == 1,
            SSL_CTX_set_cipher_list(pointer, Self.suites12) == 1, SSL_CTX_set_ciphersuites(pointer, Self.suites13) == 1,
            csn_SSL_CTX_set1_groups_list(pointer, Self.groups) == 1,
            csn_SSL_CTX_set1_sigalgs_list(pointer, Self.signatures) == 1
        else { throw .drained(.configuration, "TLS parameters") }
    }

    deinit { SSL_CTX_free(pointer) }
}

/// Calls `body` with an OpenSSL stack of the certificates of `chain`, which keeps owning them. Nil if memory is
/// exhausted.
func withStack<Result>(of chain: some Sequence<Certificate>, _ body: (OpaquePointer) -> Result) -> Result? {
    guard let stack = OPENSSL_sk_new_null() else { return nil }
    defer { OPENSSL_sk_free(stack) }
    let chain = Array(chain)
    return withExtendedLifetime(chain) {
        for certificate in chain {
            guard certificate.withX509({ OPENSSL_sk_push(stack, UnsafeRawPointer($0)) }) > 0 else { return nil }
        }
        return body(stack)
    }
}

/// The certificates in a borrowed `STACK_OF(X509)`.
func certificates(in stack: OpaquePointer?) -> [Certificate] {
    (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
        OPENSSL_sk_value(stack, index).map { Certificate(retaining: OpaquePointer($0)) }
    }
}
