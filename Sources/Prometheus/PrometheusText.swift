// SPDX-License-Identifier: Apache-2.0

/// Writes Prometheus' text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). Names are valid and
/// label values escaped already.
struct PrometheusText {
    private(set) var bytes: [UInt8] = []

    /// `text` has no line break.
    mutating func comment(_ text: String) {
        append("# ")
        append(text)
        append("\n")
    }

    mutating func begin(_ metric: MetricDescription) {
        append("# HELP ")
        append(metric.name)
        append(" ")
        for byte in metric.help.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): append("\\\\")
            case UInt8(ascii: "\n"): append("\\n")
            default: bytes.append(byte)
            }
        }
        append("\n# TYPE ")
        append(metric.name)
        append(" ")
        append(metric.kind.rawValue)
        append("\n")
    }

    mutating func sample(_ series: SeriesIdentity, suffix: String = "", _ value: Double) {
        line(series, suffix, Self.number(value))
    }

    mutating func sample(_ series: SeriesIdentity, suffix: String = "", _ value: some FixedWidthInteger) {
        line(series, suffix, String(value))
    }

    /// The samples of the buckets: each has the records up to its bound.
    mutating func buckets(_ series: SeriesIdentity, _ counts: some Sequence<(bound: String, count: UInt64)>) {
        // Made once for all buckets, which halves the time of a scrape.
        let labels = series.labels.text
        let opening = Array("\(series.metric)_bucket{\(labels)\(labels.isEmpty ? "" : ",")le=\"".utf8)
        for (bound, count) in counts {
            bytes += opening
            append(bound)
            append("\"} ")
            append(String(count))
            append("\n")
        }
    }

    private mutating func line(_ series: SeriesIdentity, _ suffix: String, _ value: String) {
        append(series.metric)
        append(suffix)
        if !series.labels.text.isEmpty {
            append("{")
            append(series.labels.text)
            append("}")
        }
        append(" ")
        append(value)
        append("\n")
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// The shortest text that Go's ParseFloat reads as this number.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map { String($0) } ?? value.description
    }
}
