// SPDX-License-Identifier: Apache-2.0

import CoreMetrics

/// Records what the proxy does, with one verb for each thing that happens. It may be called on any thread; an event
/// loop that has one of its own shares its lock with nobody.
///
/// A site is the list's `file:line`, nil for one that is not listed. No host, path or text of a peer becomes a label.
package struct ProxyMetrics: Sendable {
    private let factory: any MetricsFactory
    private let requests: HandlerTable<RequestKey, any TimerHandler>
    private let counters: HandlerTable<CounterKey, any CounterHandler>
    private let distrust: any CounterHandler
    private let dropped: any CounterHandler
    private let lag: any TimerHandler

    package init(_ factory: any MetricsFactory) {
        self.factory = factory
        requests = HandlerTable()
        counters = HandlerTable()
        distrust = factory.makeCounter(label: "countersign.client.distrust", dimensions: [])
        dropped = factory.makeCounter(label: "countersign.events.dropped", dimensions: [])
        lag = factory.makeTimer(label: "countersign.event_loop.lag", dimensions: [])
        // A series that is first seen at 1 does not grow for Prometheus, so these start at zero.
        for key in [CounterKey(.reloads, "done"), CounterKey(.reloads, "failed")] { increment(key, by: 0) }
    }

    // MARK: Verbs

    /// A request or tunnel has ended. `status` is 0 without a response.
    package func requestEnded(method: String, status: Int, decision: String, site: String?, nanoseconds: UInt64) {
        let key = RequestKey(method: method, status: status, decision: decision, site: site)
        requests.handler(key) { factory.makeTimer(label: "http.server.request.duration", dimensions: key.dimensions) }
            .recordNanoseconds(Int64(clamping: nanoseconds))
    }

    /// A challenge was answered with a scheme, or with `certificate` or `injected`.
    package func answered(scheme: String, site: String?) {
        let key = CounterKey(.answers, scheme, site: site)
        counters.handler(key) {
            // A rejection follows an answer: the series of rejections is there before it grows.
            increment(CounterKey(.rejections, scheme, site: site), by: 0)
            return counter(key)
        }
        .increment(by: 1)
    }

    /// A challenge was not answered because of `check`: `site`, `scheme` or `credential`.
    package func refused(check: String, site: String?) { increment(CounterKey(.refusals, check, site: site)) }

    /// The site has rejected a credential.
    package func rejected(scheme: String, site: String?) { increment(CounterKey(.rejections, scheme, site: site)) }

    /// The certificate of the site does not verify.
    package func untrusted(site: String?) { increment(CounterKey(.untrusted, "", site: site)) }

    /// A client does not trust the local CA.
    package func distrusted() { distrust.increment(by: 1) }

    /// There was no response. `reason` is a word such as `network`; anything else, which may name a host, is `other`.
    package func unreached(reason: String) {
        let isWord = (1...32).contains(reason.utf8.count) && reason.utf8.allSatisfy { ($0 | 0x20) &- 97 < 26 }
        increment(CounterKey(.unreached, isWord ? reason : "other"))
    }

    /// The identity has a new certificate.
    package func renewed(identity: String) { renewal(of: identity, succeeded: true) }

    /// The identity should have a new certificate, and has not received it.
    package func renewalFailed(identity: String) { renewal(of: identity, succeeded: false) }

    /// A changed home is in force (`done`), or has errors.
    package func reloaded(_ done: Bool) { increment(CounterKey(.reloads, done ? "done" : "failed")) }

    /// A reader of events was too slow.
    package func eventsDropped(count: Int) { dropped.increment(by: Int64(count)) }

    /// A task ran on an event loop this time after it was due.
    package func loopLag(nanoseconds: UInt64) { lag.recordNanoseconds(Int64(clamping: nanoseconds)) }

    // MARK: Handlers

    private func renewal(of identity: String, succeeded: Bool) {
        increment(CounterKey(.renewals, "renewed", site: identity), by: succeeded ? 1 : 0)
        increment(CounterKey(.renewals, "failed", site: identity), by: succeeded ? 0 : 1)
    }

    private func increment(_ key: CounterKey, by amount: Int64 = 1) {
        counters.handler(key) { counter(key) }.increment(by: amount)
    }

    private func counter(_ key: CounterKey) -> any CounterHandler {
        factory.makeCounter(label: key.label, dimensions: key.dimensions)
    }
}
