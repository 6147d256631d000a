// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers
import NIOCore
import CountersignTLS

extension ChallengeController {
    /// Begins TLS on a swift-nio channel that is connected to a server, as a client: for programs that drive a
    /// ``ChallengeExchange`` by hand. Returns what was found of the server's certificate, once plaintext may be written.
    ///
    /// The server is verified against the system's anchors and the home's. A listed server that does not verify is taken
    /// where `countersign trust allow` has recorded a decision for its certificate. Any other that does not is put to
    /// `serverTrustDelegate`, for 30 seconds at most; without one it is refused. Where the delegate proceeds, the verdict
    /// is still one that is not trusted: tell the exchange so by its `serverIsTrusted`. A trusted server's request for a
    /// client certificate is put to ``handle(_:)``, now and later on the same connection.
    ///
    /// Call it once, before anything is read or written; the handlers that the channel has stay behind TLS. Time counts
    /// 30 seconds, the delegate's apart. Throws ``ChallengeError``: `serverNotTrusted`, `tlsFailed`,
    /// `invalidProtectionSpace`; `CancellationError` in a task that is cancelled. The channel is closed then. An error
    /// after that is a ``ChallengeError`` in the channel's pipeline, `tlsFailed` too.
    @discardableResult
    public func startTLS(
        on channel: any Channel, host: String, port: Int = 443, serverTrustDelegate: (any ServerTrustDelegate)? = nil
    ) async throws -> ServerTrustVerdict {
        try await startTLS(on: channel, host: host, port: port, serverTrustDelegate, limit: .seconds(30))
    }

    /// The same with another limit.
    func startTLS(
        on channel: any Channel, host: String, port: Int, _ delegate: (any ServerTrustDelegate)?, limit: TimeAmount
    ) async throws -> ServerTrustVerdict {
        let space = ProtectionSpace(host: host, port: port, authenticationMethod: .clientCertificate)
        let isCancelled = NIOLockedValueBox(false)
        do {
            let origin = try space.origin()
            let tls = await policyNow().originTLS
            guard channel.isActive else { throw ChallengeError(.tlsFailed, "\(origin): the channel is not connected") }
            let verdict = channel.eventLoop.makePromise(of: ServerTrustVerdict.self)
            channel.eventLoop.execute { [self] in
                do {
                    let handler = try TLSHandler(
                        client: tls, host: origin.host, alpn: ["http/1.1"], session: nil, asksAboutTrust: true)
                    let questions = TLSQuestions(
                        handler, origin, controller: self, delegate: delegate, limit: limit, verdict: verdict)
                    // Behind TLS, and there before it: so it hears the handshake from its first event on.
                    try channel.pipeline.syncOperations.addHandler(questions, position: .first)
                    try channel.pipeline.syncOperations.addHandler(handler, position: .first)
                } catch {
                    verdict.fail(ChallengeError(.tlsFailed, "\(origin): \(error)"))
                }
            }
            return try await withTaskCancellationHandler {
                try await verdict.futureResult.get()
            } onCancel: {
                isCancelled.withLockedValue { $0 = true }
                channel.close(promise: nil)
            }
        } catch {
            channel.close(promise: nil)
            if isCancelled.withLockedValue({ $0 }) { throw CancellationError() }
            throw error
        }
    }
}
