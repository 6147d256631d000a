// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignSitePolicy
import Testing

/// The several lines of one site.
@Suite struct SiteLinesTests {
    private static let site = "https://a.example"

    private static func list(_ lines: String...) throws -> SiteList {
        try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
    }

    private static func lines(_ list: SiteList, _ site: String = site) throws -> [Int] {
        list.rules(for: try Origin(url: site)).map(\.line)
    }

    @Test func allLinesOfASiteAreFound() throws {
        let one = try Self.list("b.example", "a.example credential=one")
        #expect(try Self.lines(one) == [2])
        let requests = try Self.list("a.example methods=GET", "b.example", "a.example paths=/x", "a.example")
        #expect(try Self.lines(requests) == [1, 3, 4])
        let clients = try Self.list("a.example for=token:ci", "a.example for=token:web", "*.a.example", "a.example")
        #expect(try Self.lines(clients) == [1, 2, 4])
        #expect(try Self.lines(clients, "https://x.a.example") == [3])
        #expect(try Self.lines(clients, "http://a.example") == [])
        let both = try Self.list("a.example for=token:ci methods=GET", "a.example for=token:web", "a.example paths=/x")
        #expect(try Self.lines(both) == [1, 2, 3])
    }

    @Test func aReportNamesTheLineOfTheRequest() throws {
        let list = try Self.list("a.example methods=GET", "a.example methods=POST credential=writer", "b.example")
        func line(_ method: String?, _ site: String = Self.site) throws -> Int? {
            let request = method.map { SiteRequest(method: $0, target: ArraySlice("/".utf8)) }
            return list.line(for: try Origin(url: site), request: request)?.line
        }
        #expect(try line("GET") == 1)
        #expect(try line("POST") == 2)
        // No line is for these, so that the site is named by its first one.
        #expect(try line("PUT") == 1)
        #expect(try line(nil) == 1)
        #expect(try line(nil, "https://b.example") == 3)
        #expect(try line("GET", "https://c.example") == nil)
    }

    /// The window of a sign-in is no client that a line names.
    @Test func aHostThatIsListedForOthersIsObserved() throws {
        let list = try Self.list(
            "a.example for=token:ci", "b.example for=token:ci deny=yes", "c.example intercept=no", "d.example")
        let sites = ["a", "b", "c", "d", "e"].map { "https://\($0).example" }
        let observing = list.observing(try sites.map { try Origin(url: $0) })
        let verdicts = try sites.map { site in
            switch observing.verdict(for: try Origin(url: site)) {
            case .answer(let rule): rule.answer.isEmpty ? "observed" : "answered"
            case .tunnel: "tunnelled"
            case .refuse: "refused"
            }
        }
        #expect(verdicts == ["observed", "refused", "tunnelled", "answered", "observed"])
    }
}
