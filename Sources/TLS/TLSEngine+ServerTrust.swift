// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

// MARK: The server's chain

/// In TLS 1.3 a stapled response arrives with the chain, and there is one verdict. In TLS 1.2 the response arrives
/// later: a first verdict is found without it and amended at CertificateRequest or ServerHelloDone, before the client
/// has sent anything more. A session is verified before it is offered, with the stapled response of its original
/// handshake.
extension TLSEngine {
    /// Verifies the server's chain and continues with any verdict. If the caller must decide, or statuses are awaited,
    /// OpenSSL calls this again after ``answerTrustQuestion(with:)`` or ``statusesLearned()``. In a renegotiation the
    /// leaf must be the same.
    func serverShowedChain(_ store: OpaquePointer) -> Int32 {
        let chain = certificates(in: X509_STORE_CTX_get0_untrusted(store))
        if isEstablished {
            guard chain.first == serverTrust?.leaf else {
                return reject(
                    store, .renegotiationRefused, "the server renegotiated with another certificate")
            }
        } else if serverTrust == nil {
            let isLast = SSL_version(ssl) >= TLS1_3_VERSION
            let trust = judge(chain, staple: isLast ? receivedStaple : .awaited, isLast: isLast)
            if awaitsStatuses || trust.map({ trustQuestion.verdictFound($0) }) == true {
                _ = csn_SSL_set_retry_verify(ssl)
                return 1
            }
        } else if trustQuestion.answer == .refuse, let trust = serverTrust {
            return reject(store, .serverNotTrusted, Self.refusal(of: trust))
        }
        X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// Makes OpenSSL send the alert bad_certificate.
    private func reject(_ store: OpaquePointer, _ code: TLSError.Code, _ detail: String) -> Int32 {
        fail(TLSError(code, detail))
        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
        return 0
    }

    private static func refusal(of trust: ServerTrust) -> String { "the server is not trusted: \(trust)" }

    /// Amends the verdict in TLS 1.2 when the stapled response, if any, has arrived. If the caller must decide, nothing
    /// is sent from here on. False if the response in a renegotiation makes the server untrusted.
    func serverStapleIsComplete() -> Bool {
        guard SSL_version(ssl) < TLS1_3_VERSION, let known = serverTrust, isEstablished || !serverTrustIsFinal else {
            return true
        }
        let staple = receivedStaple
        guard
            staple != .absent || known.leaf?.demandsStapledResponse == true || hasOpenQuestions
                || revocation == .require
        else {
            verdictIsLast()
            return true
        }
        guard let trust = judge(known.chain, staple: staple, isLast: true) else { return true }
        guard isEstablished else {
            if !awaitsStatuses { _ = trustQuestion.verdictFound(trust) }
            return true
        }
        guard Set(trust.reasons).isSubset(of: known.reasons) else {
            fail(TLSError(.renegotiationRefused, "the server is no longer trusted: \(trust)"))
            return false
        }
        return true
    }

    // MARK: Revocation statuses

    /// The statuses that a handshake waits for.
    package struct StatusWait {
        let chain: [Certificate]
        let staple: ChainVerifier.Staple
        /// The statuses to learn.
        package let questions: [RevocationQuestion]
        /// Learns it.
        package let lookup: RevocationLookup
    }

    /// Has the statuses learned. Nil if the handshake need not wait for them: it waits for that of the server's
    /// certificate, and for those of its issuers only if the site requires a status.
    func askForStatuses(
        _ questions: [RevocationQuestion], _ chain: [Certificate], _ staple: ChainVerifier.Staple,
        _ context: TLSClientContext
    ) -> StatusWait? {
        guard !hasAskedForStatuses, !questions.isEmpty, let lookup = context.revocation else { return nil }
        hasAskedForStatuses = true
        let awaited = revocation == .require ? questions : questions.filter(\.isOfLeaf)
        if awaited.count < questions.count { lookup.learn(questions.filter { !$0.isOfLeaf }, .zero) {} }
        guard !awaited.isEmpty else { return nil }
        return StatusWait(chain: chain, staple: staple, questions: awaited, lookup: lookup)
    }

    /// The statuses were learned, or cannot be: finds the last verdict. The suspended call must be repeated.
    package func statusesLearned() {
        guard let wait = statusWait else { return }
        statusWait = nil
        guard let trust = judge(wait.chain, staple: wait.staple, isLast: true) else { return }
        _ = trustQuestion.verdictFound(trust)
    }

    /// Ends a handshake whose question arose after OpenSSL's own verification, which can no longer be made to fail.
    ///
    /// Nothing has been sent since ServerHelloDone, so the alert is sent as plaintext (RFC 5246 §7.2).
    func refuseLate() -> TLSError? {
        guard trustQuestion.answer == .refuse, SSL_want(ssl) != SSL_RETRY_VERIFY,
            let trust = serverTrust
        else { return nil }
        let alert = [UInt8(SSL3_RT_ALERT), 3, 3, 0, 2, UInt8(SSL3_AL_FATAL), UInt8(SSL_AD_BAD_CERTIFICATE)]
        alert.withUnsafeBytes { output($0) }
        return TLSError(.serverNotTrusted, Self.refusal(of: trust))
    }

    /// The stapled response of this handshake.
    var receivedStaple: ChainVerifier.Staple {
        var start: UnsafePointer<UInt8>?
        let length = csn_SSL_get_tlsext_status_ocsp_resp(ssl, &start)
        guard length > 0, let start else { return .absent }
        return .received(Array(UnsafeBufferPointer(start: start, count: length)))
    }
}
