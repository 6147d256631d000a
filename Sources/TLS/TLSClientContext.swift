// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import CountersignChallenges

/// The configuration of connections to origins. One serves all origins: it holds no secret and no session.
///
/// Offers post-handshake authentication (RFC 8446 §4.2.6) and accepts one secure renegotiation by the server (RFC
/// 5746); servers without RFC 5746 are refused. Requests a stapled OCSP response (RFC 6066 §8).
package final class TLSClientContext: Sendable {
    let verifier: ChainVerifier
    let now: @Sendable () -> Int64
    /// Nil if statuses are not learned.
    let revocation: RevocationLookup?
    private let verdicts = VerdictCache()
    /// The OpenSSL context for versions other than the default.
    private let own: SSLContext?

    /// `revocation` learns the statuses that certificates name; without it, none is learned. `now` is the time at which
    /// chains are verified, in seconds since 1970.
    package convenience init(
        verifier: ChainVerifier, revocation: RevocationLookup? = nil, now: @escaping @Sendable () -> Int64
    ) throws(TLSError) {
        try self.init(verifier: verifier, revocation: revocation, now: now, versions: SSLContext.versions)
    }

    init(
        verifier: ChainVerifier, revocation: RevocationLookup? = nil, now: @escaping @Sendable () -> Int64,
        versions: SSLContext.Versions
    ) throws(TLSError) {
        self.verifier = verifier
        self.revocation = revocation
        self.now = now
        own = versions == SSLContext.versions ? nil : try Self.make(versions)
    }

    /// The verdict on `chain`, possibly a cached one of a few minutes ago. With `isFinal`, an unknown status is a
    /// reason if `check` requires it; otherwise the questions about it may still be answered.
    func verdict(
        on chain: [Certificate], host: String, staple: ChainVerifier.Staple, check: RevocationCheck = .soft,
        isFinal: Bool = true
    ) -> ChainVerifier.Appraisal {
        let time = now()
        let lookup = check == .off ? nil : revocation
        let isRequired = check == .require && isFinal
        // Before the statuses are looked up, so that one that is learned meanwhile makes the verdict outdated.
        let version = lookup?.version() ?? 0
        return verdicts.verdict(
            on: chain, host: host, staple: staple,
            statuses: isRequired ? .required : lookup == nil ? .ignored : .known, version: version, at: time,
            isNamed: { chain.first.map { verifier.isNamed(host, in: $0) } ?? false }
        ) {
            let statuses = KnownStatuses(areRequired: isRequired, canBeLearned: lookup != nil) { certificate, issuer in
                lookup?.known(certificate, issuer)
            }
            return verifier.appraise(chain: chain, host: host, at: time, staple: staple, statuses: statuses)
        }
    }

    /// Whether OpenSSL accepts the identity for a connection.
    package func accepts(_ identity: Identity) -> Bool {
        // Without a context every connection fails, with any identity.
        guard let context = try? ssl, let connection = SSL_new(context.pointer) else { return true }
        defer {
            SSL_free(connection)
            ERR_clear_error()
        }
        return identity.isUsed(by: connection)
    }

    // MARK: OpenSSL's context

    var ssl: SSLContext {
        get throws(TLSError) {
            if let own { own } else { try Self.common.get() }
        }
    }

    /// Shared by all verifiers, because its callbacks refer to the connection's engine. Creating it takes longer than a
    /// connection does; it is created for the first origin.
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

extension Identity {
    /// Makes the connection present the identity. Returns false, with an error in OpenSSL's queue, if OpenSSL does not
    /// accept it.
    func isUsed(by connection: OpaquePointer) -> Bool {
        withStack(of: chain.dropFirst()) { issuers in
            leaf.withX509 { leaf in key.withPKEY { SSL_use_cert_and_key(connection, leaf, $0, issuers, 1) } }
        } == 1
    }
}
