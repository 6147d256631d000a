// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Synchronization

/// A sum that only grows. Negative amounts and NaN are ignored, because Prometheus takes a smaller value for a restart.
final class CounterSeries: Series, CounterHandler, FloatingPointCounterHandler {
    let identity: SeriesIdentity
    private let whole = Atomic<Int64>(0)
    private let fractional = AtomicDouble()

    init(_ identity: SeriesIdentity) { self.identity = identity }

    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        whole.wrappingAdd(amount, ordering: .relaxed)
    }

    func increment(by amount: Double) {
        guard amount > 0 else { return }
        fractional.add(amount)
    }

    func reset() {
        whole.store(0, ordering: .relaxed)
        fractional.store(0)
    }

    func write(to text: inout PrometheusText) {
        let fraction = fractional.load()
        let whole = whole.load(ordering: .relaxed)
        if fraction == 0 {
            text.sample(identity, whole)
        } else {
            text.sample(identity, Double(whole) + fraction)
        }
    }
}
