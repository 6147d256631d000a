// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import Testing

@testable import CountersignSitePolicy

@Suite struct RequestRulesTests {
    static func list(_ lines: String...) throws -> SiteList {
        try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
    }

    static func request(_ method: String, _ target: String) -> SiteRequest {
        SiteRequest(method: method, target: ArraySlice(target.utf8))
    }

    /// The handling of a request, in one word: the number of the line, or what happens without one.
    static func handling(of request: SiteRequest?, in list: SiteList, at url: String = "https://a.example") throws
        -> String
    {
        switch list.verdict(for: try Origin(url: url), request: request) {
        case .answer(let rule): "\(rule.line)"
        case .tunnel(let reason):
            if case .notPermittedRequest = reason.cause { "forwarded" } else { "tunnelled" }
        case .refuse: "refused"
        }
    }

    /// Lines of one site, requests, and the line that is for each.
    static let sites: [(lines: [String], requests: [(method: String, target: String, handling: String)])] = [
        (
            ["a.example methods=GET,HEAD paths=/api/v1/**,!/api/v1/admin/**"],
            [
                ("GET", "/api/v1/users", "1"), ("HEAD", "/api/v1", "1"), ("GET", "/api/v1/administrators", "1"),
                ("POST", "/api/v1/users", "forwarded"), ("get", "/api/v1/users", "forwarded"),
                ("GET", "/api/v2", "forwarded"), ("GET", "/", "forwarded"),
                ("GET", "/api/v1/admin", "forwarded"), ("GET", "/api/v1/admin/", "forwarded"),
                ("GET", "/api/v1/admin/x?y", "forwarded"), ("GET", "/api/v1//admin/x", "forwarded"),
                ("GET", "/api/v1/./admin/x", "forwarded"), ("GET", "/api/v1/x/../admin/x", "forwarded"),
                ("GET", "/api/v1/%61dmin/x", "forwarded"), ("GET", "/api/v1/admin;x/y", "forwarded"),
                ("GET", "/api/v1/Admin/x", "1"), ("GET", "/api/v1/../../etc", "forwarded"),
                ("GET", "/api/v1/%2e%2e/admin", "refused"), ("GET", "/api/v1%2fadmin", "refused"),
                ("GET", "/api/v1/x%5c..%5cadmin", "refused"), ("GET", "/api/v1/%c0%ae%c0%ae/x", "refused"),
                ("GET", "/api/v1/x/..;/admin", "refused"), ("GET", "/api/v1/%00", "refused"),
                // The line does not depend on the path of a method that it does not have.
                ("POST", "/api/v1/%2e%2e/admin", "forwarded"),
                ("OPTIONS", "*", "forwarded"), ("GET", "*", "forwarded"),
            ]
        ),
        (
            ["a.example methods=GET deny=yes"],
            [
                ("GET", "/%2e%2e/%00", "1"), ("GET", "*", "1"), ("POST", "/", "refused"), ("OPTIONS", "*", "refused"),
                ("PROPFIND", "/", "refused"), ("", "/", "refused"),
            ]
        ),
        (
            [
                "a.example answer=basic",
                "a.example paths=/api/** answer=bearer",
                "a.example paths=/api/v1/** answer=none",
                "a.example methods=POST paths=/api/** answer=ntlm",
                "a.example methods=POST,PUT paths=/api/** answer=digest",
            ],
            [
                ("GET", "/", "1"), ("OPTIONS", "*", "1"), ("GET", "/api", "2"), ("GET", "/api/x", "2"),
                ("POST", "/api/x", "4"), ("PUT", "/api/x", "5"), ("POST", "/api/v1/x", "3"), ("GET", "/API/x", "1"),
                ("GET", "/api%2fx", "refused"),
            ]
        ),
        (
            // The same whatever the order of the lines.
            [
                "a.example paths=/** answer=none",
                "a.example paths=/*/b answer=none",
                "a.example paths=/a/* answer=none",
                "a.example paths=/a/b* answer=none",
                "a.example paths=/a/b answer=none",
                "a.example paths=/**/z answer=none",
                "a.example paths=/a/**/z answer=none",
                "a.example paths=/c/**,/a/q/r/** answer=none",
            ],
            [
                ("GET", "/", "1"), ("GET", "/q", "1"), ("GET", "/q/b", "2"), ("GET", "/a/x", "3"),
                ("GET", "/a/bc", "4"),
                ("GET", "/a/b", "5"), ("GET", "/q/q/z", "6"), ("GET", "/a/q/z", "7"), ("GET", "/a/b/z", "7"),
                ("GET", "/c/z", "8"), ("GET", "/a/q/r/z", "8"), ("GET", "/a/z", "7"),
            ]
        ),
        (
            ["a.example paths=/Shop/**,!/shop/ADMIN/** case=ignore deny=yes", "a.example paths=/shop/x"],
            [
                ("GET", "/SHOP/a", "1"), ("GET", "/shop/admin/a", "refused"), ("GET", "/shop/Admin", "refused"),
                ("GET", "/shop/x", "2"), ("GET", "/shop/X", "1"), ("GET", "/shop/admin./a", "refused"),
                ("GET", "/shop/admin%20/a", "refused"), ("GET", "/other", "refused"),
            ]
        ),
        (
            ["a.example paths=!/admin/**", "b.example"],
            [
                ("GET", "/", "1"), ("GET", "/x", "1"), ("GET", "/admin", "forwarded"), ("GET", "/admin/x", "forwarded"),
                ("OPTIONS", "*", "forwarded"), ("GET", "//admin/x", "refused"),
            ]
        ),
        (
            // gRPC: every request is a POST to /SERVICE/METHOD.
            ["a.example methods=POST paths=/helloworld.Greeter/* deny=yes"],
            [
                ("POST", "/helloworld.Greeter/SayHello", "1"), ("POST", "/helloworld.Admin/Stop", "refused"),
                ("POST", "/helloworld.Greeter", "refused"), ("GET", "/helloworld.Greeter/SayHello", "refused"),
            ]
        ),
    ]

    @Test(arguments: sites) func theMostSpecificLineIsForARequest(
        site: (lines: [String], requests: [(method: String, target: String, handling: String)])
    ) throws {
        let list = try SiteList(files: [(name: "t.sites", text: site.lines.joined(separator: "\n"))])
        for request in site.requests {
            let handling = try Self.handling(of: Self.request(request.method, request.target), in: list)
            #expect(handling == request.handling, "\(request.method) \(request.target) of \(site.lines)")
        }
    }

    @Test func theOrderOfTheLinesDoesNotMatter() throws {
        let site = Self.sites[3]
        let list = try SiteList(files: [(name: "t.sites", text: site.lines.reversed().joined(separator: "\n"))])
        for request in site.requests {
            let handling = try Self.handling(of: Self.request(request.method, request.target), in: list)
            #expect(handling == "\(site.lines.count + 1 - (Int(request.handling) ?? 0))", "\(request.target)")
        }
    }

    @Test func noLimitedLineIsForARequestThatIsNotKnown() throws {
        let list = try Self.list(
            "a.example", "a.example paths=/admin/** answer=none", "b.example", "c.example methods=GET")
        #expect(try Self.handling(of: nil, in: list) == "forwarded")
        #expect(try Self.handling(of: nil, in: list, at: "https://b.example") == "3")
        #expect(try Self.handling(of: nil, in: list, at: "https://c.example") == "forwarded")
        #expect(try Self.handling(of: nil, in: list, at: "https://d.example") == "tunnelled")
    }

    @Test func connectionsGetTheFirstLine() throws {
        let list = try Self.list(
            "*.a.example", "x.a.example methods=GET answer=basic", "x.a.example methods=PUT answer=ntlm")
        let origin = try Origin(url: "https://x.a.example")
        #expect(list.rule(for: origin)?.line == 2)
        #expect(list.verdict(for: origin) == .answer(list.rules[1]))
        // A host's lines count, and not those of a wildcard for it.
        #expect(try Self.handling(of: Self.request("POST", "/"), in: list, at: "https://x.a.example") == "forwarded")
        #expect(try Self.handling(of: Self.request("POST", "/"), in: list, at: "https://y.a.example") == "1")
        #expect(list.requestRules(for: origin, client: .unknown)?.rules.count == 2)
        #expect(list.requestRules(for: try Origin(url: "https://y.a.example"), client: .unknown) == nil)
    }

    @Test func reasonsNameTheLine() throws {
        let one = try Self.list("a.example methods=GET")
        let denying = try Self.list("a.example methods=GET paths=/a deny=yes")
        let several = try Self.list("b.example", "a.example methods=GET", "a.example methods=PUT paths=/a deny=yes")
        let post = Self.request("POST", "/secret")
        let origin = try Origin(url: "https://a.example")
        func refusal(_ reason: String, line: Int = 1) -> Refusal {
            Refusal(.notPermittedRequest(line: "t.sites:\(line)"), reason)
        }
        #expect(
            one.verdict(for: origin, request: post)
                == .tunnel(reason: refusal("t.sites:1 is not for requests with this method")))
        #expect(
            denying.verdict(for: origin, request: Self.request("GET", "/b"))
                == .refuse(reason: refusal("t.sites:1 is not for requests with this path, and it says deny=yes")))
        #expect(
            several.verdict(for: origin, request: post)
                == .refuse(
                    reason: refusal(
                        "none of the site's 2 lines, the first at t.sites:2, is for requests with this method, "
                            + "and t.sites:3 says deny=yes", line: 2)))
        #expect(
            denying.verdict(for: origin, request: Self.request("GET", "/%2f"))
                == .refuse(
                    reason: refusal(
                        "the path of the request has an encoded slash (%2F), so it cannot be compared with paths= of "
                            + "t.sites:1")))
    }

    /// Each line is looked up by the beginning of its path, so that the others are not compared with it.
    @Test func tenThousandLinesOfOneSiteAreReadAndLookedUp() throws {
        let lines = (0..<10_000).map { "a.example paths=/team\($0 % 100)/project\($0)/** answer=basic" }
        let list = try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
        for index in [0, 1, 4_999, 9_999] {
            let request = Self.request("GET", "/team\(index % 100)/project\(index)/x/y")
            #expect(try Self.handling(of: request, in: list) == "\(index + 1)")
        }
        #expect(try Self.handling(of: Self.request("GET", "/team1/project2/x"), in: list) == "forwarded")
        let table = PathTable(
            list.rules.enumerated().map { index, rule in
                PathTable.Entry(line: index, rule.limits ?? .init(), rule.limits?.paths.first ?? .everything)
            })
        let candidates = table.candidates(for: try CanonicalPathTests.path("/team7/project7/x/y"))
        #expect(candidates.flatMap { $0.flatMap(\.self) }.map(\.line) == [7])
    }
}
