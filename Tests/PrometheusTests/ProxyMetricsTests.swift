// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import Testing

@testable import CountersignPrometheus

@Suite struct ProxyMetricsTests {
    private let registry = PrometheusRegistry()

    /// The lines that differ from those of a new one.
    private func lines(_ use: (ProxyMetrics) -> Void) -> [String] {
        let metrics = ProxyMetrics(registry)
        let before = Set(samples)
        use(metrics)
        return samples.filter { !before.contains($0) }
    }

    private var samples: [String] {
        String(decoding: registry.text(), as: UTF8.self).split(separator: "\n").map(String.init).filter {
            !$0.hasPrefix("#") && !$0.contains("_bucket{")
        }
    }

    @Test func aNewOneHasTheSeriesThatAreKnown() {
        #expect(
            lines { _ in } == []
                && samples == [
                    "countersign_client_distrust_total 0", "countersign_event_loop_lag_seconds_sum 0",
                    "countersign_event_loop_lag_seconds_count 0", "countersign_events_dropped_total 0",
                    #"countersign_reloads_total{countersign_result="done"} 0"#,
                    #"countersign_reloads_total{countersign_result="failed"} 0"#,
                ])
    }

    @Test func aRequestIsInTheSeriesOfItsSite() {
        let series = #"""
            {countersign_decision="intercept",countersign_site="AllowedSites/work.sites:3",\#
            http_request_method="PATCH",http_response_status_code="207"}
            """#
        let found = lines { metrics in
            for _ in 0..<2 {
                metrics.requestEnded(
                    method: "PATCH", status: 207, decision: "intercept", site: "AllowedSites/work.sites:3",
                    nanoseconds: 1_500_000_000)
            }
        }
        #expect(
            found == [
                "http_server_request_duration_seconds_sum\(series) 3",
                "http_server_request_duration_seconds_count\(series) 2",
            ])
    }

    @Test(arguments: [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "get", "PROPFIND", "", "GOT",
        "_OTHER", String(repeating: "G", count: 100_000),
    ])
    func onlyMethodsOfTheStandardAreNamed(method: String) {
        let named: Set = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
        let key = RequestKey(method: method, status: 200, decision: "forward", site: nil)
        #expect(key.dimensions[0] == ("http.request.method", named.contains(method) ? method : "_OTHER"))
    }

    @Test(arguments: [
        (0, "0"), (101, "101"), (200, "200"), (299, "200"), (304, "304"), (306, "300"), (401, "401"), (499, "400"),
        (511, "511"), (520, "500"), (600, "500"), (99, "500"), (-1, "500"), (.max, "500"),
    ])
    func onlyRegisteredStatusesAreNamed(status: Int, expected: String) {
        let key = RequestKey(method: "GET", status: status, decision: "forward", site: nil)
        #expect(key.dimensions[1] == ("http.response.status_code", expected))
    }

    @Test(arguments: ["tunnel", "intercept", "forward", "refuse", "other"])
    func onlyDecisionsAreNamed(decision: String) {
        let key = RequestKey(method: "GET", status: 200, decision: decision, site: nil)
        #expect(key.dimensions[2] == ("countersign.decision", decision == "other" ? "_OTHER" : decision))
        #expect(key.dimensions[3] == ("countersign.site", "unlisted"))
    }

    @Test func anAnswerMakesTheSeriesOfItsRejections() {
        let labels = #"{countersign_scheme="ntlm",countersign_site="a:1"}"#
        let answers = "countersign_answers_total\(labels)"
        let rejections = "countersign_rejections_total\(labels)"
        #expect(lines { $0.answered(scheme: "ntlm", site: "a:1") } == ["\(answers) 1", "\(rejections) 0"])
        #expect(lines { $0.rejected(scheme: "ntlm", site: "a:1") } == ["\(rejections) 1"])
    }

    @Test func eachVerbHasItsMetric() {
        let found = lines { metrics in
            metrics.refused(check: "scheme", site: nil)
            metrics.untrusted(site: "a:2")
            metrics.distrusted()
            metrics.reloaded(true)
            metrics.reloaded(false)
            metrics.reloaded(false)
            metrics.eventsDropped(count: 7)
            metrics.loopLag(nanoseconds: .max)
        }
        #expect(
            found == [
                "countersign_client_distrust_total 1", "countersign_event_loop_lag_seconds_sum 9223372036.854776",
                "countersign_event_loop_lag_seconds_count 1", "countersign_events_dropped_total 7",
                #"countersign_refusals_total{countersign_check="scheme",countersign_site="unlisted"} 1"#,
                #"countersign_reloads_total{countersign_result="done"} 1"#,
                #"countersign_reloads_total{countersign_result="failed"} 2"#,
                #"countersign_untrusted_total{countersign_site="a:2"} 1"#,
            ])
    }

    @Test func aRenewalMakesBothResults() {
        let renewals = #"countersign_renewals_total{countersign_identity="laptop",countersign_result="#
        #expect(
            lines { $0.renewed(identity: "laptop") } == [#"\#(renewals)"failed"} 0"#, #"\#(renewals)"renewed"} 1"#])
        #expect(lines { $0.renewalFailed(identity: "laptop") } == [#"\#(renewals)"failed"} 1"#])
    }

    @Test(arguments: [
        ("network", "network"), ("unknownName", "unknownName"), ("git.corp.example", "other"),
        ("no route to git", "other"), ("", "other"), ("a1", "other"), (String(repeating: "a", count: 33), "other"),
        ("é", "other"), ("a@b", "other"),
    ])
    func aCauseIsAWord(reason: String, expected: String) {
        #expect(
            lines { $0.unreached(reason: reason) }
                == [#"countersign_unreached_total{countersign_reason="\#(expected)"} 1"#])
    }

    @Test func aTableThatIsFullStartsAgain() {
        let total = lines { metrics in
            for index in 0..<4_001 { metrics.refused(check: "site", site: "a:\(index)") }
            metrics.refused(check: "site", site: "a:0")
        }
        #expect(total.contains(#"countersign_refusals_total{countersign_check="site",countersign_site="a:0"} 2"#))
        #expect(total.contains(#"countersign_refusals_total{otel_metric_overflow="true"} 2002"#))
    }
}
