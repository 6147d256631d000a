// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTLS
import NIOCore

/// The TLS handshake, which is the last step of the ``ConnectionChain`` that opens the connection.
extension OriginConnection {
    /// Reports the end of the handshake to `chain`.
    func establish(in chain: ConnectionChain) {
        self.chain = chain
    }

    /// The handshake has completed, or has failed with `error`.
    func finishEstablishing(_ error: UpstreamError?) {
        guard let chain = leaveChain() else { return }
        if let error {
            chain.stepFailed(error)
        } else if let channel {
            chain.stepSucceeded(channel)
        }
    }

    /// Releases the chain and whoever would be asked, each of which may hold the connection that holds it.
    @discardableResult
    func leaveChain() -> ConnectionChain? {
        defer {
            chain = nil
            trustSource = nil
        }
        return chain
    }

    func askAboutTrust(_ trust: ServerTrust) {
        guard let trustSource else { return tlsHandler?.answerTrustQuestion(with: .undecided) ?? () }
        chain?.pauseClock()
        var isAnswered = false
        trustSource(trust, self) { [self] answer in
            guard !isAnswered else { return }
            isAnswered = true
            chain?.resumeClock()
            tlsHandler?.answerTrustQuestion(with: answer)
        }
    }
}
