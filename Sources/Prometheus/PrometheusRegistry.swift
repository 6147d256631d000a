// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Synchronization

/// A backend of swift-metrics that keeps all values in memory and writes them in Prometheus' text format 0.0.4. It
/// exists because swift-prometheus is not available to the project.
///
/// Handlers of the same label and dimensions share one series, whose updates are atomic additions without a lock. A
/// metric has at most ``seriesPerMetric`` series; further ones are added up in one with the attribute
/// `otel_metric_overflow="true"`, as OpenTelemetry's rule for cardinality limits has it. A label that is already a
/// metric of another kind gets a handler that records nothing, and a comment in the text names it.
package final class PrometheusRegistry: MetricsFactory, Sendable {
    /// The value of Content-Type for ``text(extra:)``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"
    /// The overflow series included.
    package static let seriesPerMetric = 2_000

    private let state = Mutex((metrics: MetricTable(), reads: [@Sendable (inout Scrape) -> Void]()))

    package init() {}

    /// Calls `read` during each scrape, for values that are not kept but looked up. A series that `read` does not write
    /// this time is not in the text.
    package func onScrape(_ read: @escaping @Sendable (inout Scrape) -> Void) {
        state.withLock { $0.reads.append(read) }
    }

    /// All metrics in the text format, in the order of their names and labels. `extra` is read last. The sum of a
    /// histogram may be ahead of its count by the records that are made meanwhile.
    package func text(extra: (inout Scrape) -> Void = { _ in }) -> [UInt8] {
        // The closures run without the lock: they may take locks of their own, or make metrics.
        let (metrics, reads) = state.withLock { ($0.metrics, $0.reads) }
        var scrape = Scrape(metrics: metrics)
        for read in reads { read(&scrape) }
        extra(&scrape)
        return scrape.metrics.text
    }

    // MARK: MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        counter(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions) ?? NOOPMetricsHandler.instance
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        if aggregate {
            histogram(label, dimensions, isDuration: false) ?? NOOPMetricsHandler.instance
        } else {
            gauge(label, dimensions) ?? NOOPMetricsHandler.instance
        }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions, isDuration: true) ?? NOOPMetricsHandler.instance
    }

    package func destroyCounter(_ handler: any CounterHandler) { destroy(handler as? CounterSeries) }
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {
        destroy(handler as? CounterSeries)
    }
    package func destroyMeter(_ handler: any MeterHandler) { destroy(handler as? GaugeSeries) }
    package func destroyRecorder(_ handler: any RecorderHandler) { destroy(handler as? any Series) }
    package func destroyTimer(_ handler: any TimerHandler) { destroy(handler as? HistogramSeries) }

    private func counter(_ label: String, _ dimensions: [(String, String)]) -> CounterSeries? {
        let metric = MetricDescription(label, .counter)
        return state.withLock { $0.metrics.series(metric, dimensions) { CounterSeries($0) } }
    }

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> GaugeSeries? {
        let metric = MetricDescription(label, .gauge)
        return state.withLock { $0.metrics.series(metric, dimensions) { GaugeSeries($0) } }
    }

    private func histogram(_ label: String, _ dimensions: [(String, String)], isDuration: Bool) -> HistogramSeries? {
        let metric = MetricDescription(label, .histogram, isDuration: isDuration)
        let bounds = metric.isDuration ? HistogramBounds.durations : .values
        return state.withLock { $0.metrics.series(metric, dimensions) { HistogramSeries($0, bounds) } }
    }

    private func destroy(_ series: (any Series)?) {
        guard let series else { return }
        state.withLock { $0.metrics.remove(series) }
    }
}
