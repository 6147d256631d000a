// SPDX-License-Identifier: Apache-2.0

/// The value of a metric for one set of labels.
protocol Series: AnyObject, Sendable {
    var identity: SeriesIdentity { get }
    func write(to text: inout PrometheusText)
}

struct SeriesIdentity: Sendable {
    /// Its Prometheus name.
    let metric: String
    let labels: SeriesLabels
}

/// Labels as they are written between the braces: `a="1",b="2"`, in the order of their names.
struct SeriesLabels: Hashable, Sendable {
    let text: String

    static let overflow = SeriesLabels([("otel.metric.overflow", "true")])

    init(_ dimensions: [(String, String)]) {
        // Values of names that become the same are joined by a semicolon, as OpenTelemetry's rule for Prometheus says.
        var values: [String: String] = [:]
        for (name, value) in dimensions.sorted(by: { $0.0 < $1.0 }) {
            values[PrometheusName.label(name), default: ""] +=
                values[PrometheusName.label(name)] == nil ? value : ";\(value)"
        }
        var text: [UInt8] = []
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            if !text.isEmpty { text.append(UInt8(ascii: ",")) }
            text += name.utf8
            text += "=\"".utf8
            for byte in value.utf8 {
                switch byte {
                case UInt8(ascii: "\\"): text += "\\\\".utf8
                case UInt8(ascii: "\""): text += "\\\"".utf8
                case UInt8(ascii: "\n"): text += "\\n".utf8
                default: text.append(byte)
                }
            }
            text.append(UInt8(ascii: "\""))
        }
        self.text = String(decoding: text, as: UTF8.self)
    }
}
