// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import NIOCore

/// Waits for the origin's response to a request that carries a credential, although its client has left: the origin's
/// verdict on the credential decides whether others may send it.
///
/// The response's head is enough. After it, or after ``limit``, the connection is closed.
final class LateVerdict: OriginStreamDelegate, TimeWatched {
    static let limit = TimeAmount.seconds(20)
    /// How many wait at a time on one event loop. Browsers cancel many requests at once.
    static let maximumCount = 64

    private let exchange: ExchangeDriver
    private let services: LoopServices
    /// Nil once the exchange has got the verdict.
    private var connection: (any OriginLease)?
    private var timer: Scheduled<Void>?

    /// Returns false if too many wait already, or the proxy is stopping.
    static func begin(for exchange: ExchangeDriver, on connection: any OriginLease) -> Bool {
        let services = exchange.services
        guard services.lateVerdicts < maximumCount, !services.isStopped else { return false }
        services.lateVerdicts += 1
        let verdict = LateVerdict(exchange, connection)
        services.watch(verdict)
        connection.delegate = verdict
        connection.resumeReading()
        return true
    }

    private init(_ exchange: ExchangeDriver, _ connection: any OriginLease) {
        self.exchange = exchange
        services = exchange.services
        self.connection = connection
        timer = services.loop.assumeIsolated().scheduleTask(in: Self.limit) {
            let status = self.connection?.statusOfUnreadHead
            self.end { $0.loseAnswer(.unusableResponse(status: status, otherwise: .unknown)) }
        }
    }

    private func end(_ report: (ExchangeDriver) -> Void) {
        guard let connection else { return }
        self.connection = nil
        timer?.cancel()
        timer = nil
        connection.close()
        services.lateVerdicts -= 1
        services.unwatch(self)
        report(exchange)
        exchange.recordUse()
    }

    // MARK: The origin

    func originResponded(_ head: consuming ResponseHead, content: ContentEnd) {
        // The request has no content for an origin that invites it. 101 is the last response in HTTP.
        guard !head.isInformational || head.status == 101 else { return }
        let head = head
        end { $0.verdictArrived(head) }
    }

    /// The connection is closed, so no verdict will follow. An origin that has not received the whole request may have
    /// waited for the rest of it.
    func originFailed(_ error: UpstreamError) {
        let isSilent = error.code == .closedBeforeResponse && connection?.requestIsWhole == true
        end { $0.loseAnswer(.unusableResponse(status: error.status, otherwise: isSilent ? .unanswered : .unknown)) }
    }

    func originSent(_ content: ByteBuffer) {}
    func originResponseEnded(trailers: FieldLines?) {}
    func originReadCompleted() {}
    func originWritabilityChanged(_ isWritable: Bool) {}

    // MARK: The proxy

    func secondPassed(now: UInt64) {}

    func drain() {}

    func abort() { end { $0.loseAnswer(.unknown) } }
}
