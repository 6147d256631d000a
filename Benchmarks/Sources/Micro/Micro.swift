// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Micro-benchmarks of single modules and of the data path, and the check of their allocations.
@main struct Micro {
    private static let usage = """
        usage: micro [--check | --update | --repeat N] [--only NAME]... [--json]
          --check      exit 1 if a benchmark exceeds its threshold, or if a longer list slows down look-ups
          --update     write the thresholds
          --repeat N   run each benchmark N times without measuring it, for a profiler
          --only NAME  run only the benchmarks whose names begin with NAME
          --json       print the figures as JSON

        """

    private static let groups =
        HeadBenchmarks.groups + SiteBenchmarks.groups + ChallengeBenchmarks.groups + NTLMBenchmarks.groups
        + CertificateBenchmarks.groups + VaultBenchmarks.groups + AuditBenchmarks.groups + DataPathBenchmarks.groups

    private var checks = false
    private var updates = false
    private var repetitions: Int?
    private var writesJSON = false
    private var only: [String] = []

    static func main() {
        do {
            exit(try Micro(arguments: CommandLine.arguments.dropFirst()).run() ? 0 : 1)
        } catch let error as WrongUse {
            say("micro: error: \(error.detail)\n" + usage)
            exit(2)
        } catch {
            say("micro: error: \(error)\n")
            exit(1)
        }
    }

    private struct WrongUse: Error {
        let detail: String
    }

    private init(arguments: ArraySlice<String>) throws(WrongUse) {
        var rest = arguments
        while let argument = rest.popFirst() {
            switch argument {
            case "--check": checks = true
            case "--update": updates = true
            case "--json": writesJSON = true
            case "--repeat":
                guard let count = rest.popFirst().flatMap({ Int($0) }), count > 0 else {
                    throw WrongUse(detail: "--repeat needs a number")
                }
                repetitions = count
            case "--only":
                guard let name = rest.popFirst() else { throw WrongUse(detail: "--only needs a name") }
                only.append(name)
            default: throw WrongUse(detail: "unknown argument \"\(argument)\"")
            }
        }
        guard [checks, updates, repetitions != nil].count(where: { $0 }) <= 1 else {
            throw WrongUse(detail: "--check, --update and --repeat exclude each other")
        }
    }

    /// False if `--check` finds a fault.
    private func run() throws -> Bool {
        let meter = try Meter()
        var all: [Figures] = []
        var ran = false
        for group in Self.groups where isWanted({ $0.hasPrefix(group.prefix) || group.prefix.hasPrefix($0) }) {
            for benchmark in try group.make() where isWanted(benchmark.name.hasPrefix) {
                if let repetitions {
                    for _ in 0..<repetitions { try benchmark.operation() }
                    ran = true
                    continue
                }
                let figures = try meter.measure(benchmark)
                if !writesJSON { print(all.isEmpty ? Report.title + "\n" : "", Report.row(figures), separator: "") }
                all.append(figures)
            }
        }
        guard ran || !all.isEmpty else { throw WrongUse(detail: "no benchmark has that name") }
        if ran { return true }
        if writesJSON { print(Report.json(all)) }
        if updates { try update(all) }
        return checks ? try check(all) : true
    }

    private func isWanted(_ matches: (String) -> Bool) -> Bool { only.isEmpty || only.contains(where: matches) }

    private func check(_ all: [Figures]) throws -> Bool {
        let thresholds = try Self.thresholds()
        let findings = all.map(thresholds.check)
        var faults = findings.flatMap(\.faults) + steepness(all)
        if only.isEmpty {
            let gone = thresholds.lines.keys.filter { name in !all.contains { $0.name == name } }
            faults += gone.sorted().map { "\($0) has a threshold but is not a benchmark; --update removes it" }
        }
        for note in findings.flatMap(\.notes) { Self.say("micro: note: \(note)\n") }
        for fault in faults { Self.say("micro: error: \(fault)\n") }
        if faults.isEmpty { Self.say("micro: \(all.count) benchmarks are within their thresholds\n") }
        return faults.isEmpty
    }

    /// Faults for look-ups that take longer in a longer list.
    private func steepness(_ all: [Figures]) -> [String] {
        SiteBenchmarks.flat.compactMap { (long, short) in
            guard let slow = all.first(where: { $0.name == long })?.leastNanoseconds,
                let quick = all.first(where: { $0.name == short })?.leastNanoseconds,
                slow > quick * SiteBenchmarks.flatRatio
            else { return nil }
            return "\(long) takes \(Int(slow)) ns, but \(short) takes \(Int(quick)) ns"
        }
    }

    private func update(_ all: [Figures]) throws {
        var thresholds = only.isEmpty ? Thresholds() : try Self.thresholds()
        for figures in all { thresholds.update(figures) }
        let order =
            all.map(\.name) + thresholds.lines.keys.filter { name in !all.contains { $0.name == name } }.sorted()
        try Checkout.replace(Thresholds.fileName, with: thresholds.text(inOrderOf: order))
    }

    private static func thresholds() throws -> Thresholds {
        try Thresholds(parsing: String(decoding: try Checkout.read(Thresholds.fileName), as: UTF8.self))
    }

    private static func say(_ text: String) { write(STDERR_FILENO, text, text.utf8.count) }
}
