// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Synchronization

/// The distribution of the durations of a Timer, or of the values of a Recorder that aggregates. A record is two atomic
/// additions; NaN is ignored.
final class HistogramSeries: Series, TimerHandler, RecorderHandler {
    let identity: SeriesIdentity
    private let bounds: HistogramBounds
    /// Records up to the bound of the same index that are above the one before it. The first bucket without a bound has
    /// the rest.
    private let buckets = InlineArray<16, Atomic<UInt64>> { _ in Atomic(0) }
    private let nanoseconds = Atomic<UInt64>(0)
    private let values = AtomicDouble()

    init(_ identity: SeriesIdentity, _ bounds: HistogramBounds) {
        precondition(bounds.values.count < 16, "a histogram has at most 15 bounds")
        self.identity = identity
        self.bounds = bounds
    }

    /// A negative duration counts as zero.
    func recordNanoseconds(_ duration: Int64) {
        let duration = max(0, duration)
        buckets[bounds.index(ofNanoseconds: duration)].wrappingAdd(1, ordering: .relaxed)
        nanoseconds.wrappingAdd(UInt64(duration), ordering: .relaxed)
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard !value.isNaN else { return }
        buckets[bounds.index(of: value)].wrappingAdd(1, ordering: .relaxed)
        values.add(value)
    }

    func write(to text: inout PrometheusText) {
        var count: UInt64 = 0
        let counts = bounds.texts.indices.map { index in
            count &+= buckets[index].load(ordering: .relaxed)
            return (bound: bounds.texts[index], count: count)
        }
        text.buckets(identity, counts)
        text.sample(identity, suffix: "_sum", values.load() + Double(nanoseconds.load(ordering: .relaxed)) / 1e9)
        text.sample(identity, suffix: "_count", count)
    }
}

/// The upper bounds of a histogram's buckets, in ascending order.
final class HistogramBounds: Sendable {
    let values: [Double]
    /// With `+Inf` at the end.
    let texts: [String]
    private let nanoseconds: [Int64]

    init(_ values: [Double]) {
        self.values = values
        texts = (values + [.infinity]).map(PrometheusText.number)
        nanoseconds = values.map { Int64(($0 * 1e9).rounded()) }
    }

    /// In seconds: OpenTelemetry's advice for `http.server.request.duration`.
    static let durations = HistogramBounds([0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10])
    /// OpenTelemetry's default for other values.
    static let values = HistogramBounds([0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000])

    func index(of value: Double) -> Int { values.firstIndex { value <= $0 } ?? values.count }

    func index(ofNanoseconds duration: Int64) -> Int {
        nanoseconds.firstIndex { duration <= $0 } ?? nanoseconds.count
    }
}
