// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

// MARK: The server's chain

/// Under TLS 1.3 a stapled response comes with the chain, and the verdict is found once. Under TLS 1.2 it comes behind
/// it: a first verdict is found without it, and amended at CertificateRequest or ServerHelloDone, before the client has
/// sent anything more. A session is judged before it is offered, with the response that came when it was made.
extension TLSEngine {
    /// Judges the server's chain. Goes on whatever the verdict, unless the caller wants to be asked: then the handshake
    /// is retried from here after ``answerTrustQuestion(with:)``. A renegotiation must show the same leaf again.
    func serverShowedChain(_ store: OpaquePointer) -> Int32 {
        let chain = certificates(in: X509_STORE_CTX_get0_untrusted(store))
        if isEstablished {
            guard chain.first == serverTrust?.leaf else {
                return reject(
                    store, .renegotiationRefused, "the server showed another certificate when it renegotiated")
            }
        } else if serverTrust == nil {
            let isLast = SSL_version(ssl) >= TLS1_3_VERSION
            let trust = judge(chain, staple: isLast ? receivedStaple : .awaited, isLast: isLast)
            if trust.map({ trustQuestion.verdictFound($0) }) == true {
                _ = csn_SSL_set_retry_verify(ssl)
                return 1
            }
        } else if trustQuestion.answer == .refuse, let trust = serverTrust {
            return reject(store, .serverNotTrusted, Self.refusal(of: trust))
        }
        X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// OpenSSL sends the alert bad_certificate.
    private func reject(_ store: OpaquePointer, _ code: TLSError.Code, _ detail: String) -> Int32 {
        fail(TLSError(code, detail))
        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
        return 0
    }

    private static func refusal(of trust: ServerTrust) -> String { "the server is not trusted: \(trust)" }

    /// Amends the verdict under TLS 1.2, once the stapled response is here if there is one. What is asked about now
    /// holds back every byte from here on. False: a renegotiation brought a response that speaks against the server.
    func serverStapleIsComplete() -> Bool {
        guard SSL_version(ssl) < TLS1_3_VERSION, let known = serverTrust, isEstablished || !serverTrustIsFinal else {
            return true
        }
        let staple = receivedStaple
        guard staple != .absent || known.leaf?.demandsStapledResponse == true else {
            verdictIsLast()
            return true
        }
        guard let trust = judge(known.chain, staple: staple, isLast: true) else { return true }
        guard isEstablished else {
            _ = trustQuestion.verdictFound(trust)
            return true
        }
        guard Set(trust.reasons).isSubset(of: known.reasons) else {
            fail(TLSError(.renegotiationRefused, "the server is trusted no longer: \(trust)"))
            return false
        }
        return true
    }

    /// Ends a handshake that is not over, and whose question came up after OpenSSL's own check, which can no longer be made to fail.
    ///
    /// Nothing was sent since ServerHelloDone, so that the alert travels as plaintext (RFC 5246 §7.2).
    func refuseLate() -> TLSError? {
        guard trustQuestion.answer == .refuse, SSL_want(ssl) != SSL_RETRY_VERIFY,
            let trust = serverTrust
        else { return nil }
        let alert = [UInt8(SSL3_RT_ALERT), 3, 3, 0, 2, UInt8(SSL3_AL_FATAL), UInt8(SSL_AD_BAD_CERTIFICATE)]
        alert.withUnsafeBytes { output($0) }
        return TLSError(.serverNotTrusted, Self.refusal(of: trust))
    }

    /// The response that came in this handshake.
    var receivedStaple: ChainVerifier.Staple {
        var start: UnsafePointer<UInt8>?
        let length = csn_SSL_get_tlsext_status_ocsp_resp(ssl, &start)
        guard length > 0, let start else { return .absent }
        return .received(Array(UnsafeBufferPointer(start: start, count: length)))
    }
}
