// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOCore
import CountersignTLS

/// How long a handshake may still take. Stands still while somebody thinks about the origin's certificate.
final class HandshakeDeadline {
    private let loop: any EventLoop
    private var left: TimeAmount
    private var startedAt: NIODeadline
    private var task: Scheduled<Void>?

    init(loop: any EventLoop, limit: TimeAmount) {
        self.loop = loop
        left = limit
        startedAt = loop.now
    }

    func run(_ passed: @escaping () -> Void) {
        guard task == nil else { return }
        startedAt = loop.now
        task = loop.assumeIsolated().scheduleTask(in: left, passed)
    }

    func pause() {
        guard let task else { return }
        task.cancel()
        self.task = nil
        left = left - (loop.now - startedAt)
    }
}

/// From the first byte to a connection that may carry a request.
extension OriginConnection {
    /// `completion` hears once, within `limit` of handshaking, how it ended.
    func establish(
        within limit: TimeAmount, _ completion: @escaping (Result<OriginConnection, UpstreamError>) -> Void
    ) {
        established = completion
        guard let loop = context?.eventLoop else { return }
        deadline = HandshakeDeadline(loop: loop, limit: limit)
        runDeadline()
    }

    func finishEstablishing(_ result: Result<OriginConnection, UpstreamError>) {
        let tell = established
        abandonEstablishing()
        tell?(result)
    }

    /// Nobody wants to hear any more how it ended. What asked, waited or was to be told let go of: until then each may hold the
    /// connection that holds it.
    func abandonEstablishing() {
        established = nil
        trustSource = nil
        deadline?.pause()
        deadline = nil
    }

    func askAboutTrust(_ trust: ServerTrust) {
        guard let trustSource else { return tlsHandler?.answerTrustQuestion(with: .undecided) ?? () }
        deadline?.pause()
        var isAnswered = false
        trustSource(trust, self) { [self] answer in
            guard !isAnswered else { return }
            isAnswered = true
            runDeadline()
            tlsHandler?.answerTrustQuestion(with: answer)
        }
    }

    private func runDeadline() {
        deadline?.run { [self] in
            fail(UpstreamError(.tlsTimedOut, "\(place): the TLS handshake was not done in time"))
        }
    }
}
