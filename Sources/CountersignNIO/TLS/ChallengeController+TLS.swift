// SPDX-License-Identifier: Apache-2.0

public import Countersign
import NIOConcurrencyHelpers
public import NIOCore
import CountersignSitePolicy
import CountersignChannelTLS

extension ChallengeController {
    /// Starts TLS as a client on a connected SwiftNIO channel, for programs that drive a `ChallengeExchange` by hand.
    /// Returns the verdict on the server's certificate once plaintext can be written.
    ///
    /// The server is verified against the trust anchors of the system and the home, and its revocation status is
    /// checked with its issuer, according to the option `revocation=` of the site's line. If a listed server cannot be
    /// verified, it is accepted if `countersign trust allow` has recorded an exception for its certificate. Otherwise
    /// `serverTrustDelegate` decides, within 30 seconds; without a delegate, the server is refused. If the delegate
    /// proceeds, the verdict remains untrusted: pass it to the exchange as `serverIsTrusted`. If a trusted server
    /// requests a client certificate, at any time on this connection, `handle(_:)` answers.
    ///
    /// Call this once, before anything is read or written. TLS is inserted in front of the channel's existing handlers.
    /// The handshake must complete within 30 seconds, not counting the delegate. Throws `ChallengeError`
    /// (`serverNotTrusted`, `tlsFailed` or `invalidProtectionSpace`), or `CancellationError` if the task is cancelled,
    /// and closes the channel. Later errors are sent through the channel's pipeline as `ChallengeError` with the code
    /// `tlsFailed`.
    @discardableResult
    public func startTLS(
        on channel: any Channel, host: String, port: Int = 443, serverTrustDelegate: (any ServerTrustDelegate)? = nil
    ) async throws -> ServerTrustVerdict {
        try await startTLS(on: channel, host: host, port: port, serverTrustDelegate, limit: .seconds(30))
    }

    /// Starts TLS with another time limit.
    func startTLS(
        on channel: any Channel, host: String, port: Int, _ delegate: (any ServerTrustDelegate)?, limit: TimeAmount
    ) async throws -> ServerTrustVerdict {
        let space = ProtectionSpace(host: host, port: port, authenticationMethod: .clientCertificate)
        let isCancelled = NIOLockedValueBox(false)
        do {
            let origin = try space.origin()
            let policy = await policyNow()
            let tls = policy.originTLS
            let rule: SiteRule? = if case .answer(let rule) = policy.sites.verdict(for: origin) { rule } else { nil }
            let revocation = rule?.revocation ?? .soft
            guard channel.isActive else { throw ChallengeError(.tlsFailed, "\(origin): the channel is not connected") }
            let verdict = channel.eventLoop.makePromise(of: ServerTrustVerdict.self)
            channel.eventLoop.execute { [self] in
                do {
                    let handler = try TLSHandler(
                        client: tls, host: origin.host, alpn: ["http/1.1"], session: nil, asksAboutTrust: true,
                        revocation: revocation)
                    let questions = TLSQuestions(
                        handler, origin, controller: self, delegate: delegate, limit: limit, verdict: verdict)
                    // Behind TLS, but added before it, so that it receives all events of the handshake.
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
