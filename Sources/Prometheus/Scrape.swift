// SPDX-License-Identifier: Apache-2.0

/// The values that are written at the time of a scrape. They replace a kept series of the same label and dimensions.
package struct Scrape {
    var metrics: MetricTable

    package mutating func gauge(_ label: String, _ value: Double, _ dimensions: [(String, String)] = []) {
        metrics.put(MetricDescription(label, .gauge), dimensions) {
            let series = GaugeSeries($0)
            series.set(value)
            return series
        }
    }

    /// `total` is the sum since the start of the process, not the growth since the last scrape.
    package mutating func counter(_ label: String, _ total: Double, _ dimensions: [(String, String)] = []) {
        metrics.put(MetricDescription(label, .counter), dimensions) {
            let series = CounterSeries($0)
            series.increment(by: total)
            return series
        }
    }
}
