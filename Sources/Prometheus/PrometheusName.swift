// SPDX-License-Identifier: Apache-2.0

/// Names of swift-metrics as Prometheus names: letters of ASCII, digits and single underscores.
enum PrometheusName {
    /// `base.unit` becomes `base_unit`, a counter ends in `_total`, and a duration in `_seconds`.
    static func metric(_ label: String, _ kind: MetricKind, isDuration: Bool) -> String {
        var name = converted(label)
        while name.last == "_" { name.removeLast() }
        if name.first?.isNumber ?? true { name = "_" + name }
        if isDuration, !name.hasSuffix("_seconds") { name += "_seconds" }
        if kind == .counter, !name.hasSuffix("_total") { name += "_total" }
        return name
    }

    /// Prometheus keeps names that begin with two underscores, and `le` of a histogram, for itself. The prefixes are
    /// OpenTelemetry's.
    static func label(_ attribute: String) -> String {
        let name = converted(attribute)
        if name.isEmpty || name == "le" || name.first?.isNumber == true { return "key_" + name }
        return name.hasPrefix("_") ? "key" + name : name
    }

    private static func converted(_ text: String) -> String {
        var name = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": name.unicodeScalars.append(scalar)
            default: if name.last != "_" { name.append("_") }
            }
        }
        return name
    }
}
