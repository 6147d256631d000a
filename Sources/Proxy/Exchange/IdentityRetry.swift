// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOCore
import CountersignUpstream

/// Whether what an origin ended because of a client identity is tried once more, by another identity of the name. Once for
/// each request, or CONNECT.
struct IdentityRetry {
    private var isSpent = false

    /// False where `error` is about something else, or one retry was made: `completion` is not called then. Else it is called
    /// once, on the loop, with whether another identity is in force now.
    mutating func begin(
        after error: UpstreamError, _ services: LoopServices, completion: @escaping (Bool) -> Void
    ) -> Bool {
        guard !isSpent, let identity = error.rejectedIdentity, let refresher = services.shared.identityRefresher else {
            return false
        }
        isSpent = true
        services.loop.makeFutureWithTask { await refresher.rejected(identity) }
            .assumeIsolated()
            .whenComplete { completion((try? $0.get()) ?? false) }
        return true
    }
}

extension ExchangeDriver {
    /// Whether `step` waits for another identity, to be done again. `giveUp` is called when there is none.
    func waitsForIdentity(after error: UpstreamError, _ step: Step?, giveUp: @escaping () -> Void) -> Bool {
        guard let step, !replay.hasLostItsStart, !exchange.requiresSameConnection else { return false }
        let waits = identityRetry.begin(after: error, services) { isReplaced in
            guard case .preparing = self.mode else { return }
            if isReplaced { self.drained(step) } else { giveUp() }
        }
        if waits { mode = .preparing }
        return waits
    }

    /// The origin answers behind the identity that it was shown: not with a no to whoever asks.
    func noteAcceptedIdentity(status: Int) {
        guard let connection, connection.requestCount == 1, let identity = connection.shownIdentity, status < 400 else {
            return
        }
        services.shared.identityRefresher?.accepted(identity)
    }
}
