// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTLS
import NIOCore

/// The TLS handshake, which is the last step of the ``ConnectionChain`` that opens the connection.
extension OriginConnection {
    /// A connection without TLS over `channel`, which is connected already; call it on the channel's event loop.
    /// `place` names the other end in error messages. If adding the handler throws, the channel is unchanged.
    package static func plain(over channel: any Channel, place: String) throws -> OriginConnection {
        let connection = OriginConnection(place: place, tlsHandler: nil)
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
    }

    /// Reports the end of the handshake to `chain`.
    func establish(in chain: ConnectionChain) {
        self.chain = chain
    }

    /// The handshake has completed, or has failed with `error`.
    func finishEstablishing(_ error: UpstreamError?) {
        guard let chain = leaveChain() else { return }
        if let error {
            chain.stepFailed(error)
        } else if let channel = context?.channel {
            chain.stepSucceeded(channel)
        }
    }

    /// Releases the chain and the trust source. Each of them may keep the connection alive.
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
