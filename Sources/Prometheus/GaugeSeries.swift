// SPDX-License-Identifier: Apache-2.0

import CoreMetrics

/// The last value of a Meter, or of a Recorder that does not aggregate.
final class GaugeSeries: Series, MeterHandler, RecorderHandler {
    let identity: SeriesIdentity
    private let value = AtomicDouble()

    init(_ identity: SeriesIdentity) { self.identity = identity }

    func set(_ value: Int64) { self.value.store(Double(value)) }
    func set(_ value: Double) { self.value.store(value) }
    func increment(by amount: Double) { value.add(amount) }
    func decrement(by amount: Double) { value.add(-amount) }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(to text: inout PrometheusText) { text.sample(identity, value.load()) }
}
