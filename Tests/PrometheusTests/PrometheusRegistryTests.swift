// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Foundation
import Synchronization
import Testing

@testable import CountersignPrometheus

@Suite struct PrometheusRegistryTests {
    private let registry = PrometheusRegistry()

    private var text: String { String(decoding: registry.text(), as: UTF8.self) }
    private var lines: [Substring] { text.split(separator: "\n") }

    @Test func aCounterHasATotal() {
        let counter = Counter(label: "jobs.done", dimensions: [("queue", "b")], factory: registry)
        counter.increment(by: 41)
        Counter(label: "jobs.done", dimensions: [("queue", "b")], factory: registry).increment()
        Counter(label: "jobs.done", dimensions: [("queue", "a")], factory: registry).increment(by: -5)
        FloatingPointCounter(label: "work.seconds.total", factory: registry).increment(by: 0.25)
        #expect(
            text == """
                # HELP jobs_done_total Metric jobs.done of swift-metrics.
                # TYPE jobs_done_total counter
                jobs_done_total{queue="a"} 0
                jobs_done_total{queue="b"} 42
                # HELP work_seconds_total Metric work.seconds.total of swift-metrics.
                # TYPE work_seconds_total counter
                work_seconds_total 0.25

                """)
        counter.reset()
        #expect(lines.contains(#"jobs_done_total{queue="b"} 0"#))
    }

    @Test func aGaugeHasItsLastValue() {
        let meter = Meter(label: "depth", factory: registry)
        meter.set(4)
        meter.increment(by: 1.5)
        meter.decrement(by: 3)
        Gauge(label: "load", factory: registry).record(-7)
        #expect(
            text == """
                # HELP depth Metric depth of swift-metrics.
                # TYPE depth gauge
                depth 2.5
                # HELP load Metric load of swift-metrics.
                # TYPE load gauge
                load -7

                """)
    }

    @Test func aTimerIsAHistogramInSeconds() {
        let timer = CoreMetrics.Timer(label: "wait", dimensions: [("a", "1")], factory: registry)
        for nanoseconds: Int64 in [-1, 5_000_000, 5_000_001, 1_000_000_000, 10_000_000_000, 10_000_000_001] {
            timer.recordNanoseconds(nanoseconds)
        }
        #expect(
            text == """
                # HELP wait_seconds Metric wait of swift-metrics.
                # TYPE wait_seconds histogram
                wait_seconds_bucket{a="1",le="0.005"} 2
                wait_seconds_bucket{a="1",le="0.01"} 3
                wait_seconds_bucket{a="1",le="0.025"} 3
                wait_seconds_bucket{a="1",le="0.05"} 3
                wait_seconds_bucket{a="1",le="0.075"} 3
                wait_seconds_bucket{a="1",le="0.1"} 3
                wait_seconds_bucket{a="1",le="0.25"} 3
                wait_seconds_bucket{a="1",le="0.5"} 3
                wait_seconds_bucket{a="1",le="0.75"} 3
                wait_seconds_bucket{a="1",le="1"} 4
                wait_seconds_bucket{a="1",le="2.5"} 4
                wait_seconds_bucket{a="1",le="5"} 4
                wait_seconds_bucket{a="1",le="7.5"} 4
                wait_seconds_bucket{a="1",le="10"} 5
                wait_seconds_bucket{a="1",le="+Inf"} 6
                wait_seconds_sum{a="1"} 21.010000002
                wait_seconds_count{a="1"} 6

                """)
    }

    @Test func aRecorderThatAggregatesIsAHistogram() {
        let recorder = Recorder(label: "size.bytes", factory: registry)
        for value in [0, 5, 5.5, 10_000, 20_000, .nan] { recorder.record(value) }
        #expect(
            text == """
                # HELP size_bytes Metric size.bytes of swift-metrics.
                # TYPE size_bytes histogram
                size_bytes_bucket{le="0"} 1
                size_bytes_bucket{le="5"} 2
                size_bytes_bucket{le="10"} 3
                size_bytes_bucket{le="25"} 3
                size_bytes_bucket{le="50"} 3
                size_bytes_bucket{le="75"} 3
                size_bytes_bucket{le="100"} 3
                size_bytes_bucket{le="250"} 3
                size_bytes_bucket{le="500"} 3
                size_bytes_bucket{le="750"} 3
                size_bytes_bucket{le="1000"} 3
                size_bytes_bucket{le="2500"} 3
                size_bytes_bucket{le="5000"} 3
                size_bytes_bucket{le="7500"} 3
                size_bytes_bucket{le="10000"} 4
                size_bytes_bucket{le="+Inf"} 5
                size_bytes_sum 30010.5
                size_bytes_count 5

                """)
    }

    @Test(arguments: [
        (Double.nan, "NaN"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (0, "0"), (1e15, "1000000000000000"),
        (0.1, "0.1"), (1e300, "1e+300"), (.leastNonzeroMagnitude, "5e-324"),
    ])
    func numbersAreAsGoReadsThem(value: Double, expected: String) {
        Meter(label: "x", factory: registry).set(value)
        #expect(lines.last == "x \(expected)")
    }

    @Test(arguments: [
        (#"a"b"#, #"a\"b"#), (#"a\b"#, #"a\\b"#), ("a\nb", #"a\nb"#), ("a\0b", "a\0b"), ("", ""),
        ("é}{=,", "é}{=,"), ("a\r\nb", "a\r\\nb"), ("\u{301}", "\u{301}"),
    ])
    func valuesOfLabelsAreEscaped(value: String, expected: String) {
        registry.makeMeter(label: "x", dimensions: [("v", value)]).set(Int64(1))
        // By bytes: a combining character joins the quotation mark before it.
        let head = "# HELP x Metric x of swift-metrics.\n# TYPE x gauge\n"
        #expect(Array(text.utf8) == Array("\(head)x{v=\"\(expected)\"} 1\n".utf8))
    }

    @Test func helpIsEscaped() {
        registry.makeMeter(label: "a\\b\nc\"", dimensions: []).set(Int64(1))
        #expect(lines.first == #"# HELP a_b_c Metric a\\b\nc" of swift-metrics."#)
    }

    @Test(arguments: [
        ("http.route", "http_route"), ("a..b--c", "a_b_c"), ("_x", "key_x"), ("__name__", "key_name_"),
        ("le", "key_le"), ("1st", "key_1st"), ("", "key_"), ("größe", "gr_e"),
    ])
    func namesOfLabelsAreConverted(attribute: String, expected: String) {
        #expect(PrometheusName.label(attribute) == expected)
    }

    @Test(arguments: [
        ("a.b", MetricKind.counter, false, "a_b_total"), ("a.total", .counter, false, "a_total"),
        ("a", .gauge, true, "a_seconds"), ("a.seconds", .histogram, true, "a_seconds"), ("9a", .gauge, false, "_9a"),
        ("", .gauge, false, "_"),
        ("a.", .counter, false, "a_total"), ("a:b", .gauge, false, "a_b"),
    ])
    func namesOfMetricsAreConverted(label: String, kind: MetricKind, isDuration: Bool, expected: String) {
        #expect(PrometheusName.metric(label, kind, isDuration: isDuration) == expected)
    }

    @Test func valuesOfAttributesWithTheSameNameAreJoined() {
        registry.makeMeter(label: "x", dimensions: [("a.b", "2"), ("a-b", "1"), ("a_b", "3")]).set(Int64(1))
        #expect(lines.last == #"x{a_b="1;2;3"} 1"#)
    }

    @Test func theSeriesBeyondTheLimitAreOne() {
        for index in 0..<2_500 {
            registry.makeCounter(label: "x", dimensions: [("i", "\(index)")]).increment(by: Int64(1))
        }
        registry.makeCounter(label: "x", dimensions: [("i", "0")]).increment(by: Int64(1))
        let samples = lines.filter { !$0.hasPrefix("#") }
        #expect(samples.count == 2_000)
        #expect(samples.contains(#"x_total{otel_metric_overflow="true"} 501"#))
        #expect(samples.contains(#"x_total{i="0"} 2"#))
        #expect(samples.contains(#"x_total{i="1998"} 1"#) && !samples.contains(#"x_total{i="1999"} 1"#))
        // The limit is that of one metric.
        registry.makeCounter(label: "y", dimensions: [("i", "1")]).increment(by: Int64(1))
        #expect(lines.last == #"y_total{i="1"} 1"#)
    }

    @Test func theLimitHoldsForAScrape() {
        registry.onScrape { scrape in
            for index in 0..<2_500 { scrape.gauge("x", Double(index), [("i", "\(index)")]) }
        }
        let samples = lines.filter { !$0.hasPrefix("#") }
        #expect(samples.count == 2_000)
        #expect(samples.contains(#"x{otel_metric_overflow="true"} 2499"#))
    }

    @Test func aSeriesThatIsNotReadAgainIsGone() {
        let ends = Names()
        registry.onScrape { scrape in
            for name in ends.all { scrape.gauge("countersign.end", 1_800_000_000.5, [("countersign.name", name)]) }
        }
        ends.all = ["a", "b"]
        #expect(lines.dropFirst(2).map(String.init) == ["a", "b"].map(Self.end))
        ends.all = ["b"]
        #expect(lines.dropFirst(2).map(String.init) == ["b"].map(Self.end))
        ends.all = []
        #expect(text == "")
    }

    private static func end(_ name: String) -> String {
        #"countersign_end_timestamp_seconds{countersign_name="\#(name)"} 1800000000.5"#
    }

    @Test func aScrapeReplacesASeriesForOnce() {
        let meter = Meter(label: "x", factory: registry)
        meter.set(1)
        let scraped = registry.text { scrape in
            scrape.gauge("x", 2)
            scrape.counter("y", 0.5)
        }
        #expect(
            String(decoding: scraped, as: UTF8.self) == """
                # HELP x Metric x of swift-metrics.
                # TYPE x gauge
                x 2
                # HELP y_total Metric y of swift-metrics.
                # TYPE y_total counter
                y_total 0.5

                """)
        #expect(lines.last == "x 1")
    }

    @Test func aScrapeMayMakeMetrics() {
        registry.onScrape { [registry] _ in
            registry.makeCounter(label: "scrapes", dimensions: []).increment(by: Int64(1))
        }
        #expect(text == "")
        #expect(lines.last == "scrapes_total 2")
    }

    @Test func aNameHasOneKind() {
        Meter(label: "x.count", factory: registry).set(1)
        Recorder(label: "x", factory: registry).record(1)
        Counter(label: "y", factory: registry).increment()
        Meter(label: "y.total", factory: registry).set(5)
        #expect(
            text == """
                # Conflict: x is not written as a histogram: the name is in use
                # Conflict: y_total is not written as a gauge: the name is in use
                # HELP x_count Metric x.count of swift-metrics.
                # TYPE x_count gauge
                x_count 1
                # HELP y_total Metric y of swift-metrics.
                # TYPE y_total counter
                y_total 1

                """)
    }

    @Test func aDestroyedSeriesIsGoneAndStartsAgain() {
        let counter = Counter(label: "x", dimensions: [("i", "1")], factory: registry)
        let other = CoreMetrics.Timer(label: "y", factory: registry)
        let recorder = Recorder(label: "z", factory: registry)
        counter.increment()
        counter.destroy()
        other.destroy()
        recorder.destroy()
        #expect(text == "")
        let again = Counter(label: "x", dimensions: [("i", "1")], factory: registry)
        counter.destroy()
        again.increment(by: 3)
        #expect(lines.last == #"x_total{i="1"} 3"#)
    }

    /// Four threads of their own: the tasks of a group may all run on one.
    private static func onThreads(_ body: @escaping @Sendable () -> Void) {
        let threads = DispatchGroup()
        for _ in 0..<4 {
            threads.enter()
            Thread.detachNewThread {
                body()
                threads.leave()
            }
        }
        threads.wait()
    }

    @Test func eachRecordOfManyThreadsCounts() {
        let counter = registry.makeCounter(label: "c", dimensions: [])
        let fractional = registry.makeFloatingPointCounter(label: "f", dimensions: [])
        let meter = registry.makeMeter(label: "g", dimensions: [])
        let timer = registry.makeTimer(label: "t", dimensions: [])
        let recorder = registry.makeRecorder(label: "r", dimensions: [], aggregate: true)
        Self.onThreads {
            // One after the other, so that the threads meet at one value.
            for _ in 0..<200_000 { counter.increment(by: Int64(1)) }
            for _ in 0..<200_000 { fractional.increment(by: 0.5) }
            for _ in 0..<200_000 { meter.increment(by: 1) }
            for _ in 0..<200_000 { timer.recordNanoseconds(1_000_000_000) }
            for _ in 0..<200_000 { recorder.record(Int64(2)) }
        }
        let samples = Set(lines)
        let expected: [Substring] = [
            "c_total 800000", "f_total 400000", "g 800000", #"t_seconds_bucket{le="0.75"} 0"#,
            #"t_seconds_bucket{le="1"} 800000"#, "t_seconds_sum 800000", "t_seconds_count 800000", "r_sum 1600000",
            "r_count 800000",
        ]
        for line in expected { #expect(samples.contains(line), "\(line)") }
    }

    @Test func threadsThatMakeTheSameSeriesShareIt() {
        Self.onThreads { [registry] in
            for index in 0..<1_000 {
                registry.makeCounter(label: "c", dimensions: [("i", "\(index)")]).increment(by: Int64(1))
                if index % 100 == 0 { _ = registry.text() }
            }
        }
        #expect(
            lines.filter { !$0.hasPrefix("#") }.map(String.init)
                == (0..<1_000).map { "c_total{i=\"\($0)\"} 4" }.sorted())
    }

    @Test(.enabled(if: Promtool.isInstalled, "promtool is not installed"))
    func promtoolReadsTheText() throws {
        let metrics = ProxyMetrics(registry)
        metrics.requestEnded(
            method: "GET", status: 200, decision: "intercept", site: "AllowedSites/a b\\\"\n.sites:3", nanoseconds: 1)
        metrics.answered(scheme: "ntlm", site: nil)
        metrics.renewed(identity: "é\0\r")
        metrics.unreached(reason: "network")
        registry.makeMeter(label: "HELP", dimensions: [("le", "1"), ("__name__", "x")]).set(Double.nan)
        registry.makeCounter(label: "HELP", dimensions: []).increment(by: Int64(1))
        registry.makeTimer(label: "HELP", dimensions: [("le", "1")]).recordNanoseconds(1)
        registry.makeMeter(label: "HELP.total", dimensions: []).set(-Double.infinity)
        registry.onScrape { ProcessMetrics.current()?.write(to: &$0) }
        #expect(lines.first == "# Conflict: HELP_total is not written as a gauge: the name is in use")
        #expect(try Promtool.run(["check", "metrics"], input: registry.text()) == .init(status: 0, output: ""))
        // The oracle complains.
        #expect(try Promtool.run(["check", "metrics"], input: Array("x{a=\"\"\"} 1\n".utf8)).status == 1)
    }
}

/// The names that a scrape reads.
private final class Names: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] {
        get { names.withLock { $0 } }
        set { names.withLock { $0 = newValue } }
    }
}
