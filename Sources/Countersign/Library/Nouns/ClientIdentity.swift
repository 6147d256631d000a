// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
package import CountersignCertificates
import CountersignCryptography

/// A client certificate with its private key, which is used to sign and cannot be exported.
public struct ClientIdentity: Equatable, Sendable {
    package let identity: Identity

    /// The identity with its key.
    package var stored: Identity { identity }

    init(_ identity: Identity) {
        self.identity = identity
    }

    /// The name under which it was enrolled.
    public var name: String { identity.name }

    /// The certificate and its issuers, leaf first.
    public var chain: [X509Certificate] { identity.chain.map(X509Certificate.init) }

    /// The chain in PEM, leaf first.
    public var chainPEM: String { identity.chain.map(\.pem).joined() }

    /// Configures an OpenSSL `SSL_CTX` to answer certificate requests with this identity, replacing any other.
    ///
    /// `sslContext` is the pointer that libcurl passes to the `CURLOPT_SSL_CTX_FUNCTION` callback. It must belong to
    /// the OpenSSL library that this process has loaded dynamically, not to BoringSSL or a statically linked copy. The
    /// context retains the certificate and key. Throws ``ChallengeError`` with the code `certificateFaulty` if OpenSSL
    /// refuses them.
    public func install(into sslContext: OpaquePointer) throws(ChallengeError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let issuers = OPENSSL_sk_new_null() else { throw Self.refused(name) }
        defer { OPENSSL_sk_free(issuers) }
        for issuer in identity.chain.dropFirst() {
            let pushed = issuer.withX509 { OPENSSL_sk_push(issuers, UnsafeRawPointer($0)) }
            guard pushed > 0 else { throw Self.refused(name) }
        }
        // OpenSSL retains the certificates of the stack itself.
        let used = identity.leaf.withX509 { leaf in
            identity.key.withPKEY { SSL_CTX_use_cert_and_key(sslContext, leaf, $0, issuers, 1) }
        }
        guard used == 1 else { throw Self.refused(name) }
    }

    private static func refused(_ name: String) -> ChallengeError {
        let reason = CryptographyError(.unavailable, "identity \"\(name)\" cannot be used in this SSL_CTX")
        return ChallengeError(
            .certificateFaulty, reason.detail, hint: "the context's security level may forbid the key or its signature")
    }
}

extension ClientIdentity: CustomStringConvertible {
    /// The name, in quotes, and the certificate's subject.
    public var description: String { "identity \"\(name)\" (\(identity.leaf))" }
}
