// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignSitePolicy

/// SitePolicy: looking up an origin in lists of 1 to 10,000 lines. The time must not grow with the list.
enum SiteBenchmarks {
    static let groups = [BenchmarkGroup(prefix: "host", make: hosts)]

    /// The minimum time of the first must be at most ``flatRatio`` times that of the second.
    static let flat = ["listed", "wildcard", "unlisted"].map { ("host-\($0)-10000", "host-\($0)-10") }
    /// Well above the effect of cache misses on a busy machine, and well below that of a linear search.
    static let flatRatio = 10.0
    /// The number of origins that are looked up in turn, so that hash collisions of a single one do not matter.
    private static let origins = 64

    private static func hosts() throws -> [Benchmark] {
        let authority = "intranet.acme.example:8443"
        return [Benchmark("host-read") { keep(try Origin(scheme: .https, authority: authority)) }]
            + (try [1, 10, 100, 10_000].flatMap(lookups))
    }

    private static func lookups(lines: Int) throws -> [Benchmark] {
        let list = try SiteList(files: [(name: "work.sites", text: text(lines: lines))])
        guard list.rules.count == lines else { throw SetUpFailure("\(lines) lines are \(list.rules.count) rules") }
        // The last line and every second one before it, wrapping around in a short list.
        let distances = (0..<origins).map { $0 * 2 % lines }
        let listed = try distances.map { try origin("site\(lines - 1 - $0).dept7.acme.example") }
        let unlisted = try (0..<origins).map { try origin("cdn\($0).static.other.example") }
        let exact = try lookup("host-listed-\(lines)", of: listed, in: list, isListed: true)
        let none = try lookup("host-unlisted-\(lines)", of: unlisted, in: list, isListed: false)
        guard lines > 1 else { return [exact, none] }
        let below = try distances.map { try origin("www.eu.apps\(lines - 2 - $0).acme.example") }
        return [exact, try lookup("host-wildcard-\(lines)", of: below, in: list, isListed: true), none]
    }

    /// Looks up the next origin each time.
    private static func lookup(
        _ name: String, of origins: [Origin], in list: SiteList, isListed: Bool
    ) throws -> Benchmark {
        for origin in origins {
            if case .answer = list.verdict(for: origin), isListed { continue }
            if case .tunnel = list.verdict(for: origin), !isListed { continue }
            throw SetUpFailure("\(origin) is \(isListed ? "not " : "")listed")
        }
        var next = 0
        return Benchmark(name) {
            keep(list.verdict(for: origins[next]))
            next = (next + 1) % origins.count
        }
    }

    /// Every second line has a wildcard; the last one does not.
    private static func text(lines: Int) -> String {
        (0..<lines).map { index in
            (lines - index).isMultiple(of: 2)
                ? "*.apps\(index).acme.example answer=ntlm,basic\n"
                : "site\(index).dept7.acme.example answer=ntlm domain=ACME # desk \(index)\n"
        }.joined()
    }

    private static func origin(_ host: String) throws -> Origin { try Origin(scheme: .https, authority: host) }
}
