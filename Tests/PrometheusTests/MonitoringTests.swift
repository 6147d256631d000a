// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignPrometheus

/// The files in `Documentation/Monitoring`, and the page about them.
@Suite struct MonitoringTests {
    private static let documentation = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Documentation")

    private static func path(_ name: String) -> String {
        documentation.appendingPathComponent("Monitoring/\(name)").path
    }

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: documentation.appendingPathComponent(name), encoding: .utf8)
    }

    // MARK: Expressions

    private struct Dashboard: Decodable {
        let panels: [Panel]
        let templating: Templating

        struct Panel: Decodable {
            let id: Int
            let type: String
            let title: String
            let targets: [Target]?
            let gridPos: Place
        }
        struct Target: Decodable { let expr: String }
        struct Place: Decodable { let x, y, w, h: Int }
        struct Templating: Decodable { let list: [Variable] }
        struct Variable: Decodable {
            let name: String
            let definition: String?
        }

        init() throws {
            let text = try MonitoringTests.text("Monitoring/dashboard.json")
            self = try JSONDecoder().decode(Self.self, from: Data(text.utf8))
        }

        /// With Grafana's variables replaced.
        var expressions: [String] {
            panels.flatMap { $0.targets ?? [] }.map {
                $0.expr.replacingOccurrences(of: "$__rate_interval", with: "5m")
                    .replacingOccurrences(of: "$instance", with: ".*")
            }
        }
    }

    /// Those of `alerts.yml`: what follows `expr:`, with the lines below that are indented more.
    private static func alertExpressions() throws -> [String] {
        var found: [String] = []
        var indent: Int?
        for line in try text("Monitoring/alerts.yml").split(separator: "\n", omittingEmptySubsequences: false) {
            let own = line.prefix { $0 == " " }.count
            if let key = line.range(of: "expr: ") {
                found.append(String(line[key.upperBound...].drop { $0 == "|" }))
                indent = own
            } else if let least = indent, own > least {
                found[found.count - 1] += "\n\(line)"
            } else {
                indent = nil
            }
        }
        return found
    }

    /// The words of an expression that are neither of PromQL nor of the metrics of this program.
    private static func unknownWords(_ expression: String) -> Set<String> {
        let known = Set(MetricDescription.known.flatMap { $0.sampleNames + $0.attributes })
        let language: Set = [
            "by", "or", "and", "unless", "on", "offset", "sum", "min", "sort", "time", "rate", "increase", "topk",
            "histogram_quantile", "vector", "le", "job", "instance", "up",
        ]
        let withoutTexts = expression.replacing(#/"[^"]*"|\[[^\]]*\]|offset \w+/#, with: "")
        return Set(withoutTexts.matches(of: #/[A-Za-z_]\w*/#).map { String($0.output) })
            .subtracting(known).subtracting(language)
    }

    /// The labels in selectors that their metric does not have, and those after `by` that no metric there has.
    private static func unknownLabels(_ expression: String) -> Set<String> {
        let common: Set = ["job", "instance", "le"]
        var found: Set<String> = []
        func attributes(_ name: Substring) -> Set<String> {
            let metric = MetricDescription.known.first { $0.sampleNames.contains(String(name)) }
            return common.union(metric?.attributes ?? [])
        }
        for selector in expression.matches(of: #/(\w+)\{([^}]*)\}/#) {
            let labels = selector.output.2.matches(of: #/(\w+)[!=]=?~?"/#).map { String($0.output.1) }
            found.formUnion(Set(labels).subtracting(attributes(selector.output.1)))
        }
        let present = Set(expression.matches(of: #/\w+/#).flatMap { attributes($0.output) })
        for group in expression.matches(of: #/(?:by|on) \(([^)]*)\)/#) {
            let labels = group.output.1.split(separator: ", ").map(String.init)
            found.formUnion(Set(labels).subtracting(present))
        }
        return found
    }

    @Test func expressionsNameOnlyMetricsThatAreWritten() throws {
        let dashboard = try Dashboard().expressions
        let alerts = try Self.alertExpressions()
        #expect(dashboard.count >= 25 && alerts.count >= 8)
        for expression in dashboard + alerts {
            #expect(Self.unknownWords(expression) == [], "\(expression)")
            #expect(Self.unknownLabels(expression) == [], "\(expression)")
        }
    }

    @Test func aWrongNameIsFound() {
        #expect(Self.unknownWords(#"rate(countersign_answer{countersign_site="x"}[5m])"#) == ["countersign_answer"])
        #expect(Self.unknownLabels(#"countersign_answers_total{countersign_check="x"}"#) == ["countersign_check"])
        #expect(
            Self.unknownLabels("sum by (le, countersign_check) (countersign_answers_total)") == ["countersign_check"])
    }

    @Test func theDashboardShowsEveryMetric() throws {
        let text = try Dashboard().expressions.joined(separator: "\n")
        for metric in MetricDescription.known { #expect(text.contains(metric.name), "\(metric.name)") }
    }

    @Test func panelsHaveTheirOwnPlaceAndNumber() throws {
        let panels = try Dashboard().panels
        #expect(Set(panels.map(\.id)).count == panels.count)
        var places: Set<[Int]> = []
        for panel in panels {
            #expect(panel.type == "row" || panel.targets?.isEmpty == false, "\(panel.title)")
            #expect(panel.gridPos.x + panel.gridPos.w <= 24, "\(panel.title)")
            for x in panel.gridPos.x..<panel.gridPos.x + panel.gridPos.w {
                for y in panel.gridPos.y..<panel.gridPos.y + panel.gridPos.h {
                    #expect(places.insert([x, y]).inserted, "\(panel.title) covers another panel")
                }
            }
        }
    }

    @Test func thePageNamesEveryMetric() throws {
        let page = try Self.text("Behaviour/Monitoring.md")
        for metric in MetricDescription.known {
            let row = page.split(separator: "\n").first { $0.contains("| `\(metric.name)` |") }
            #expect(row != nil, "\(metric.name)")
            #expect(row?.contains("| \(metric.kind) |") == true, "\(metric.name)")
            for attribute in metric.attributes {
                #expect(row?.contains("`\(attribute)`") == true, "\(metric.name): \(attribute)")
            }
        }
    }

    // MARK: Prometheus' own checks

    @Test(.enabled(if: Promtool.isInstalled, "promtool is not installed"))
    func promtoolAcceptsTheFiles() throws {
        let config = try Promtool.run(["check", "config", Self.path("prometheus.yml")])
        let alerts = try Self.alertExpressions().count
        #expect(config.status == 0 && config.output.contains("\(alerts) rules found"), "\(config)")
        let tests = try Promtool.run(["test", "rules", Self.path("alerts.test.yml")])
        #expect(tests.status == 0 && tests.output.contains("SUCCESS"), "\(tests)")
    }

    @Test(.enabled(if: Promtool.isInstalled, "promtool is not installed"))
    func expressionsOfTheDashboardParse() throws {
        let expressions = try Dashboard().expressions
        let result = try Self.check(expressions)
        #expect(result.status == 0, "\(result)")
        let broken = try Self.check(expressions + ["sum by (le"])
        #expect(broken.status == 1 && broken.output.contains("could not parse expression"), "\(broken)")
    }

    private struct RuleFile: Encodable {
        let groups: [Group]
        struct Group: Encodable {
            let name: String
            let rules: [Rule]
        }
        struct Rule: Encodable {
            let record: String
            let expr: String
        }
    }

    /// YAML includes JSON, so a file of recording rules needs no other encoder.
    private static func check(_ expressions: [String]) throws -> Promtool.Result {
        let rules = expressions.enumerated().map { RuleFile.Rule(record: "test:e\($0.offset)", expr: $0.element) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("rules-\(UUID().uuidString).json")
        let encoder = JSONEncoder()
        // YAML has no escape for a slash.
        encoder.outputFormatting = .withoutEscapingSlashes
        try encoder.encode(RuleFile(groups: [.init(name: "dashboard", rules: rules)])).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try Promtool.run(["check", "rules", file.path])
    }
}
