// SPDX-License-Identifier: Apache-2.0

/// The metrics by their Prometheus name, each with its series by their labels.
struct MetricTable {
    private struct Metric {
        let description: MetricDescription
        var series: [SeriesLabels: any Series] = [:]
    }

    private var metrics: [String: Metric] = [:]
    /// The metric that writes lines of this name.
    private var owners: [String: String] = [:]
    private var conflicts: Set<String> = []

    /// The series with these dimensions, or the overflow series, made by `make` if there is none. Nil if the name is in
    /// use for a metric of another kind.
    mutating func series<S: Series>(
        _ description: MetricDescription, _ dimensions: [(String, String)], make: (SeriesIdentity) -> S
    ) -> S? {
        guard claim(description) else { return nil }
        let identity = identity(description, dimensions)
        if let found = metrics[identity.metric]?.series[identity.labels] { return found as? S }
        let made = make(identity)
        metrics[identity.metric]?.series[identity.labels] = made
        return made
    }

    /// As `series`, but replaces one that exists.
    mutating func put(
        _ description: MetricDescription, _ dimensions: [(String, String)], make: (SeriesIdentity) -> any Series
    ) {
        guard claim(description) else { return }
        let identity = identity(description, dimensions)
        metrics[identity.metric]?.series[identity.labels] = make(identity)
    }

    /// The overflow series stays, because it has the values of several handlers.
    mutating func remove(_ series: any Series) {
        let identity = series.identity
        guard identity.labels != .overflow, metrics[identity.metric]?.series[identity.labels] === series else { return }
        metrics[identity.metric]?.series[identity.labels] = nil
    }

    /// Whether the metric exists now. Two metrics must not write lines of the same name.
    private mutating func claim(_ description: MetricDescription) -> Bool {
        if let metric = metrics[description.name] {
            if metric.description.kind == description.kind { return true }
        } else if description.sampleNames.allSatisfy({ owners[$0] == nil }) {
            for name in description.sampleNames { owners[name] = description.name }
            metrics[description.name] = Metric(description: description)
            return true
        }
        conflicts.insert("\(description.name) is not written as a \(description.kind): the name is in use")
        return false
    }

    /// The metric must exist.
    private func identity(_ description: MetricDescription, _ dimensions: [(String, String)]) -> SeriesIdentity {
        let labels = SeriesLabels(dimensions)
        let series = metrics[description.name]?.series ?? [:]
        let others = series.count - (series[.overflow] == nil ? 0 : 1)
        let isFull = others >= PrometheusRegistry.seriesPerMetric - 1 && series[labels] == nil
        return SeriesIdentity(metric: description.name, labels: isFull ? .overflow : labels)
    }

    /// Prometheus' text format.
    var text: [UInt8] {
        var text = PrometheusText()
        for conflict in conflicts.sorted() { text.comment("Conflict: \(conflict)") }
        for (_, metric) in metrics.sorted(by: { $0.key < $1.key }) where !metric.series.isEmpty {
            text.begin(metric.description)
            for (_, series) in metric.series.sorted(by: { $0.key.text < $1.key.text }) { series.write(to: &text) }
        }
        return text.bytes
    }
}
