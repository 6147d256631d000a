// SPDX-License-Identifier: Apache-2.0

import Challenges
import SitePolicy

/// The SitePolicy room: an origin looked up in lists of 1 to 10,000 lines, which must not take longer with the longer
/// list.
enum SiteBenchmarks {
    static let groups = [BenchmarkGroup(prefix: "host", make: hosts)]

    /// The least times of the first may not be more than ``flatRatio`` times those of the second.
    static let flat = ["listed", "wildcard", "unlisted"].map { ("host-\($0)-10000", "host-\($0)-10") }
    static let flatRatio = 2.5

    private static func hosts() throws -> [Benchmark] {
        let authority = "intranet.acme.example:8443"
        return [Benchmark("host-read") { keep(try Origin(scheme: .https, authority: authority)) }]
            + (try [1, 10, 100, 10_000].flatMap(lookups))
    }

    private static func lookups(lines: Int) throws -> [Benchmark] {
        let list = try SiteList(files: [(name: "work.sites", text: text(lines: lines))])
        guard list.rules.count == lines else { throw SetUpFailure("\(lines) lines are \(list.rules.count) rules") }
        let listed = try origin("site\(lines - 1).dept7.acme.example")
        guard case .answer = list.verdict(for: listed) else { throw SetUpFailure("\(listed) is not listed") }
        let unlisted = try origin("cdn.static.other.example")
        guard case .tunnel = list.verdict(for: unlisted) else { throw SetUpFailure("\(unlisted) is listed") }
        let exact = Benchmark("host-listed-\(lines)") { keep(list.verdict(for: listed)) }
        let none = Benchmark("host-unlisted-\(lines)") { keep(list.verdict(for: unlisted)) }
        guard lines > 1 else { return [exact, none] }
        let below = try origin("www.eu.apps\(lines - 2).acme.example")
        guard case .answer = list.verdict(for: below) else { throw SetUpFailure("\(below) is below no wildcard") }
        return [exact, Benchmark("host-wildcard-\(lines)") { keep(list.verdict(for: below)) }, none]
    }

    /// Every second line a wildcard, the last one none.
    private static func text(lines: Int) -> String {
        (0..<lines).map { index in
            (lines - index).isMultiple(of: 2)
                ? "*.apps\(index).acme.example answer=ntlm,basic\n"
                : "site\(index).dept7.acme.example answer=ntlm domain=ACME # desk \(index)\n"
        }.joined()
    }

    private static func origin(_ host: String) throws -> Origin { try Origin(scheme: .https, authority: host) }
}
