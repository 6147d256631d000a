// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// What TLS has to be on the connections to one EST server, and what came of their handshakes.
///
/// It puts itself into the SSL_CTX that libcurl made: TLS 1.2 or 1.3 with ephemeral keys and AEAD, the server judged by
/// the house's own verifier against explicit anchors (RFC 7030 §3.6.1), the identity shown from memory when it is asked
/// for. libcurl and OpenSSL hold its address: it has to outlive the handle, and is used on the thread of one call at a
/// time.
final class ServerTLS {
    /// Nil: nobody is verified, and nothing may be shown or sent that matters (RFC 7030 §4.1.1).
    let verifier: ChainVerifier?
    let host: String
    private let identity: Identity?
    private let now: @Sendable () -> Int64

    /// The server's chain as the last connection brought it, leaf first.
    private(set) var chain: [Certificate] = []
    /// The verdict on it; nil where nobody was verified.
    private(set) var trust: ServerTrust?
    /// The server sent a CertificateRequest on the last connection.
    private(set) var wasAskedForIdentity = false
    /// ... and it was answered with the identity.
    private(set) var hasShownIdentity = false
    /// The server was given the time to reject the identity on this connection.
    private(set) var hasVerdict = false
    /// The last alert that the server sent (RFC 8446 §6), but for close_notify.
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

    /// Readies the SSL_CTX of a new connection; false when OpenSSL does not take it.
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
        // libcurl writes the keys where SSLKEYLOGFILE says.
        SSL_CTX_set_keylog_callback(context, nil)
        return SSL_CTX_set_ex_data(context, Self.index, address) == 1
            && csn_SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
            && SSL_CTX_set_cipher_list(context, Self.suites12) == 1
            && SSL_CTX_set_ciphersuites(context, Self.suites13) == 1
    }

    /// A new call begins, perhaps on the connection of the last one.
    func callBegins() { alert = nil }

    /// Once a connection is enough.
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

    /// The alert's name for people: `certificate expired`.
    static func name(ofAlert alert: UInt8) -> String {
        SSL_alert_desc_string_long(Int32(alert)).map { String(cString: $0) } ?? "alert \(alert)"
    }
}
