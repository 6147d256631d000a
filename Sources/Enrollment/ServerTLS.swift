// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// The TLS settings for connections to one EST server, and the results of their handshakes.
///
/// Configures the SSL_CTX that libcurl creates: TLS 1.2 or 1.3 with ephemeral keys and AEAD; ``ChainVerifier`` verifies
/// the server (RFC 7030 §3.6); the identity is presented from memory if the server requests
/// one. libcurl and OpenSSL refer to this object by address, so it has to outlive the handle. Only one call at a time
/// uses it.
final class ServerTLS {
    /// Nil: the server is not verified, and no identity or credential may be sent (RFC 7030 §4.1.1).
    let verifier: ChainVerifier?
    let host: String
    private let identity: Identity?
    private let now: @Sendable () -> Int64

    /// The server's chain on the last connection, leaf first.
    private(set) var chain: [Certificate] = []
    /// The verdict on the chain; nil if it was not verified.
    private(set) var trust: ServerTrust?
    /// The server sent a CertificateRequest on the last connection.
    private(set) var wasAskedForIdentity = false
    /// The CertificateRequest was answered with the identity.
    private(set) var hasShownIdentity = false
    /// The server had time to reject the identity on this connection.
    private(set) var hasVerdict = false
    /// The last alert from the server (RFC 8446 §6) other than close_notify.
    private(set) var alert: UInt8?

    init(host: String, verifier: ChainVerifier?, identity: Identity?, now: @escaping @Sendable () -> Int64) {
        self.host = host
        self.verifier = verifier
        self.identity = identity
        self.now = now
    }

    private static let suites12 = "ECDHE+AESGCM:ECDHE+CHACHA20"
    private static let suites13 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let index = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil, nil)

    /// Configures the SSL_CTX of a new connection. Returns false if OpenSSL does not accept a setting.
    func install(on context: OpaquePointer) -> Bool {
        chain = []
        trust = nil
        wasAskedForIdentity = false
        hasShownIdentity = false
        hasVerdict = false
        alert = nil
        let address = Unmanaged.passUnretained(self).toOpaque()
        SSL_CTX_set_cert_verify_callback(
            context,
            { store, address in
                guard let store, let address else { return 0 }
                return ServerTLS.at(address).serverShowedChain(store)
            }, address)
        SSL_CTX_set_cert_cb(
            context,
            { ssl, address in
                guard let ssl, let address else { return 0 }
                return ServerTLS.at(address).serverAskedForCertificate(ssl)
            }, address)
        SSL_CTX_set_info_callback(context) { ssl, point, value in
            guard point & SSL_CB_READ_ALERT == SSL_CB_READ_ALERT, let context = SSL_get_SSL_CTX(ssl),
                let address = SSL_CTX_get_ex_data(context, ServerTLS.index)
            else { return }
            ServerTLS.at(address).serverSentAlert(UInt8(truncatingIfNeeded: value))
        }
        // libcurl would write the session keys to SSLKEYLOGFILE.
        SSL_CTX_set_keylog_callback(context, nil)
        return SSL_CTX_set_ex_data(context, Self.index, address) == 1
            && csn_SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
            && SSL_CTX_set_cipher_list(context, Self.suites12) == 1
            && SSL_CTX_set_ciphersuites(context, Self.suites13) == 1
    }

    /// Called at the start of a call, which may reuse a connection.
    func callBegins() { alert = nil }

    /// Called once per connection, when the server had time to reject the identity.
    func verdictCame() { hasVerdict = true }

    private static func at(_ address: UnsafeMutableRawPointer) -> ServerTLS {
        Unmanaged<ServerTLS>.fromOpaque(address).takeUnretainedValue()
    }

    private func serverShowedChain(_ store: OpaquePointer) -> Int32 {
        let sent = X509_STORE_CTX_get0_untrusted(store)
        chain = (0..<max(0, OPENSSL_sk_num(sent))).compactMap { index in
            OPENSSL_sk_value(sent, index).map { Certificate(retaining: OpaquePointer($0)) }
        }
        if chain.isEmpty, let leaf = X509_STORE_CTX_get0_cert(store) { chain = [Certificate(retaining: leaf)] }
        guard let verifier else { return 1 }
        let verdict = verifier.evaluate(chain: chain, host: host, at: now())
        trust = verdict
        guard verdict.isTrusted else {
            X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED)
            return 0
        }
        return 1
    }

    private func serverAskedForCertificate(_ ssl: OpaquePointer) -> Int32 {
        wasAskedForIdentity = true
        guard let identity else { return 1 }
        guard let issuers = OPENSSL_sk_new_null() else { return 0 }
        defer { OPENSSL_sk_free(issuers) }
        for certificate in identity.chain.dropFirst() {
            guard certificate.withX509({ OPENSSL_sk_push(issuers, UnsafeRawPointer($0)) }) > 0 else { return 0 }
        }
        let used = identity.leaf.withX509 { leaf in
            identity.key.withPKEY { SSL_use_cert_and_key(ssl, leaf, $0, issuers, 1) }
        }
        hasShownIdentity = used == 1
        return used
    }

    private func serverSentAlert(_ description: UInt8) {
        if Int32(description) != SSL3_AD_CLOSE_NOTIFY { alert = description }
    }

    /// The alert's name, such as `certificate expired`.
    static func name(ofAlert alert: UInt8) -> String {
        SSL_alert_desc_string_long(Int32(alert)).map { String(cString: $0) } ?? "alert \(alert)"
    }
}
