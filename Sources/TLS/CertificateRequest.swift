// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A server's request for a client certificate (RFC 8446 §4.3.2, RFC 5246 §7.4.4).
package struct CertificateRequest: Equatable, Sendable {
    /// The DER names of the certification authorities that the server accepts, in its order; empty if it named none.
    package let acceptableIssuers: [[UInt8]]
    /// The SignatureScheme values (RFC 8446 §4.2.3) that the server accepts, in its order.
    package let signatureAlgorithms: [UInt16]
    /// The request arrived after the handshake: post-handshake authentication (RFC 8446 §4.6.2) or a TLS 1.2
    /// renegotiation.
    package let isPostHandshake: Bool

    package init(acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16], isPostHandshake: Bool) {
        self.acceptableIssuers = acceptableIssuers
        self.signatureAlgorithms = signatureAlgorithms
        self.isPostHandshake = isPostHandshake
    }

    /// Reads the request that `ssl` is processing.
    init(of ssl: OpaquePointer, isPostHandshake: Bool) {
        self.init(
            acceptableIssuers: Self.issuers(of: ssl), signatureAlgorithms: Self.algorithms(of: ssl),
            isPostHandshake: isPostHandshake)
    }

    private static func issuers(of ssl: OpaquePointer) -> [[UInt8]] {
        guard let names = SSL_get0_peer_CA_list(ssl) else { return [] }
        return (0..<max(0, OPENSSL_sk_num(names))).compactMap { index in
            var der: UnsafePointer<UInt8>?
            var length = 0
            guard let name = OPENSSL_sk_value(names, index),
                X509_NAME_get0_der(OpaquePointer(name), &der, &length) == 1, let der
            else { return nil }
            return Array(UnsafeBufferPointer(start: der, count: length))
        }
    }

    private static func algorithms(of ssl: OpaquePointer) -> [UInt16] {
        (0..<max(0, SSL_get_sigalgs(ssl, -1, nil, nil, nil, nil, nil))).map { index in
            var low: UInt8 = 0
            var high: UInt8 = 0
            SSL_get_sigalgs(ssl, index, nil, nil, nil, &low, &high)
            return UInt16(high) << 8 | UInt16(low)
        }
    }
}
