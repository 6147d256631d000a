// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// What every connection to an origin starts from. One for all origins: it holds no secret and no session.
///
/// Post-handshake authentication is offered (RFC 8446 §4.2.6), and one secure renegotiation that the server starts
/// (RFC 5746); a server without RFC 5746 is refused. Servers are asked for a stapled OCSP response (RFC 6066 §8).
package final class TLSClientContext: Sendable {
    let verifier: ChainVerifier
    let now: @Sendable () -> Int64
    private let verdicts = VerdictCache()
    /// For other versions than the usual ones.
    private let own: SSLContext?

    /// `now` gives the time at which chains are judged, in seconds since 1970.
    package convenience init(verifier: ChainVerifier, now: @escaping @Sendable () -> Int64) throws(TLSError) {
        try self.init(verifier: verifier, now: now, versions: SSLContext.versions)
    }

    init(
        verifier: ChainVerifier, now: @escaping @Sendable () -> Int64, versions: SSLContext.Versions
    ) throws(TLSError) {
        self.verifier = verifier
        self.now = now
        own = versions == SSLContext.versions ? nil : try Self.make(versions)
    }

    /// The verdict on `chain` now, or one of a few minutes ago.
    func verdict(on chain: [Certificate], host: String, staple: ChainVerifier.Staple) -> ServerTrust {
        let time = now()
        return verdicts.verdict(
            on: chain, host: host, staple: staple, at: time,
            isNamed: { chain.first.map { verifier.isNamed(host, in: $0) } ?? false }
        ) {
            verifier.appraise(chain: chain, host: host, at: time, staple: staple)
        }
    }

    // MARK: OpenSSL's context

    var ssl: SSLContext {
        get throws(TLSError) {
            if let own { own } else { try Self.common.get() }
        }
    }

    /// One for all verifiers, as whatever it asks it asks of the connection's engine. It takes longer to make than a connection,
    /// and none is made before the first origin.
    private static let common: Result<SSLContext, TLSError> = {
        do throws(TLSError) { return .success(try make(SSLContext.versions)) } catch { return .failure(error) }
    }()

    private static func make(_ versions: SSLContext.Versions) throws(TLSError) -> SSLContext {
        let ssl = try SSLContext(method: TLS_client_method(), versions: versions)
        SSL_CTX_set_verify(ssl.pointer, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_post_handshake_auth(ssl.pointer, 1)
        SSL_CTX_set_cert_verify_callback(
            ssl.pointer,
            { store, _ in
                guard let store, let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
                else {
                    return 0
                }
                return TLSEngine.of(OpaquePointer(ssl))?.serverShowedChain(store) ?? 0
            }, nil)
        guard csn_SSL_CTX_set_tlsext_status_type(ssl.pointer, TLSEXT_STATUSTYPE_ocsp) == 1 else {
            throw .drained(.configuration, "stapled responses")
        }
        _ = csn_SSL_CTX_set_tlsext_status_cb(ssl.pointer) { ssl, _ in
            TLSEngine.of(ssl)?.serverStapleIsComplete() == true ? 1 : 0
        }
        SSL_CTX_set_cert_cb(ssl.pointer, { ssl, _ in TLSEngine.of(ssl)?.serverAskedForCertificate() ?? 0 }, nil)
        SSL_CTX_set_info_callback(ssl.pointer) { ssl, point, _ in
            TLSEngine.of(ssl)?.handshakePassed(point: point)
        }
        return ssl
    }
}
