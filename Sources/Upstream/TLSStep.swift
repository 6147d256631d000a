// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignChannelTLS
import CountersignTLS
import NIOCore

/// The last step to an https origin: the TLS handshake, watched by the ``OriginConnection`` that will carry the
/// requests.
final class TLSStep: ConnectionStep {
    let kind = UpstreamError.Step.tls
    let place: String
    let limit: TimeAmount

    private let origin: Origin
    private let context: TLSClientContext
    private let offersHTTP2: Bool
    private let revocation: RevocationCheck
    private let certificateSource: CertificateSource?
    private let trustSource: OriginConnection.TrustSource?
    private let spare: SpareBuffer
    private let isNextToSocket: Bool
    private var connection: OriginConnection?

    /// `isNextToSocket`: the connection is not inside of TLS to a parent.
    init(
        origin: Origin, context: TLSClientContext, revocation: RevocationCheck, limit: TimeAmount, spare: SpareBuffer,
        isNextToSocket: Bool, offersHTTP2: Bool, certificateSource: CertificateSource?,
        trustSource: OriginConnection.TrustSource?
    ) {
        self.origin = origin
        self.context = context
        self.offersHTTP2 = offersHTTP2
        self.revocation = revocation
        self.limit = limit
        self.spare = spare
        self.isNextToSocket = isNextToSocket
        self.certificateSource = certificateSource
        self.trustSource = trustSource
        place = HostText.joined(origin.host, origin.port)
    }

    /// The connection whose handshake has completed.
    var establishedConnection: OriginConnection {
        // The step cannot succeed before `run`, which makes it.
        guard let connection else { preconditionFailure("the TLS step succeeded without a connection") }
        return connection
    }

    func run(on channel: any Channel, in chain: ConnectionChain) {
        do {
            let handler = try TLSHandler(
                client: context, host: origin.host, alpn: offersHTTP2 ? ["h2", "http/1.1"] : ["http/1.1"], session: nil,
                asksAboutTrust: trustSource != nil, revocation: revocation, spare: spare,
                writesToSocket: isNextToSocket)
            let connection = OriginConnection(
                place: place, tlsHandler: handler, spare: spare, isNextToSocket: isNextToSocket)
            connection.certificateSource = certificateSource
            connection.trustSource = trustSource
            self.connection = connection
            // Added before the TLS handler, so that it sees every event of the handshake.
            try channel.pipeline.syncOperations.addHandler(connection)
            connection.establish(in: chain)
            try channel.pipeline.syncOperations.addHandler(handler, position: .before(connection))
        } catch {
            connection?.leaveChain()
            chain.stepFailed(UpstreamError.connecting(error, to: place))
        }
    }

    func chainEnded() { connection?.close() }
}
