// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import CountersignPrometheus

/// Counts what the proxy does.
struct ProxyMeter: RequestMeter {
    private let metrics: ProxyMetrics

    init(_ metrics: ProxyMetrics) { self.metrics = metrics }

    func requestEnded(
        method: String, status: Int, decision: String, rule: String?, challenge: String?, check: RequestEvent.Check?,
        nanoseconds: UInt64
    ) {
        metrics.requestEnded(method: method, status: status, decision: decision, site: rule, nanoseconds: nanoseconds)
        if let challenge { metrics.answered(scheme: challenge, site: rule) }
        if let check, rule != nil { metrics.refused(check: check.rawValue, site: rule) }
    }

    func eventLoopWasLate(nanoseconds: UInt64) { metrics.loopLag(nanoseconds: nanoseconds) }

    /// Counts an event that is not about a request.
    func note(_ event: Event.Kind) {
        switch event {
        case .rejected(_, let rule, let scheme, _, _): metrics.rejected(scheme: scheme, site: rule)
        case .untrusted(_, let rule, _, _): metrics.untrusted(site: rule)
        case .distrusted: metrics.distrusted()
        case .unreached(_, let reason): metrics.unreached(reason: reason.replacing(" ", with: ""))
        case .renewed(let identity): metrics.renewed(identity: identity)
        case .renewalFailed(let identity, _): metrics.renewalFailed(identity: identity)
        case .reloaded: metrics.reloaded(true)
        case .notReloaded: metrics.reloaded(false)
        case .request, .question, .approval, .paused, .resumed, .locked, .unlocked, .notice, .lost: break
        }
    }
}
