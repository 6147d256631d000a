// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignSitePolicy

@Suite struct RequestLimitsErrorTests {
    /// A faulty line, the column of the fault, the message, and a part of the hint.
    static let faults: [(line: String, column: Int, message: String, hint: String)] = [
        ("a.example methods=", 11, #"the option "methods" has no value"#, "methods=GET,HEAD"),
        ("a.example methods=GET,", 23, #""" is not a method"#, "methods=GET,HEAD"),
        ("a.example methods=GET,P(T", 23, #""P(T" is not a method"#, "methods=GET,HEAD"),
        ("a.example methods=get", 19, #"methods are compared as they are written: "get""#, "write GET"),
        ("a.example methods=GET,GET", 23, #"the method "GET" is given twice"#, "keep one"),
        ("a.example methods=CONNECT", 19, "CONNECT opens a tunnel and is not a request to the site", "WebSocket"),
        ("a.example paths=", 11, #"the option "paths" has no value"#, "paths=/api/**"),
        ("a.example paths=api/**", 17, #"paths=: "api/**": a path begins with /"#, "/api/v1/**"),
        ("a.example paths=/a,!b", 21, #"paths=: "b": a path begins with /"#, "without the site"),
        ("a.example paths=/a,/b/", 23, #"paths=: "/b/": a slash at the end makes no difference"#, "write /b, or /b/**"),
        ("a.example paths=/a,!/b//c", 24, #"paths=: "/b//c": empty segments are not compared"#, "one /"),
        ("a.example paths=/a,/a", 20, #"the path "/a" is given twice"#, "keep one"),
        ("a.example paths=/a,!/a", 20, #"the path "/a" is given twice"#, "keep one"),
        ("a.example paths=/a?b", 19, #"paths=: "/a?b": the query is not compared"#, "before the ?"),
        ("a.example paths=/a/%2e%2e", 20, #"paths=: "/a/%2e%2e": the path has an encoded dot (%2E)"#, "refused"),
        ("a.example case=ignore", 11, "case= has no effect without paths=", "add paths="),
        ("a.example paths=/a case=no", 25, #"unknown value "no" of case"#, "ignore or exact"),
        ("a.example deny=yes", 11, "deny= has no effect in a line that is for all requests and clients", "methods="),
        ("a.example methods=GET deny=maybe", 28, #"unknown value "maybe" of deny"#, "yes or no"),
        ("a.example intercept=no methods=GET", 24, "methods= has no effect with intercept=no", "remove one"),
        ("a.example intercept=no paths=/a", 24, "paths= has no effect with intercept=no", "remove one"),
        ("proxy://p.example:8080 methods=GET", 24, "methods= has no effect for a parent proxy", "remove"),
        ("proxy://p.example:8080 paths=/a", 24, "paths= has no effect for a parent proxy", "remove"),
        ("a.example approve=yes", 19, #"unknown value "yes" of approve"#, "write ask for all requests"),
        (
            "a.example answer=ntlm,certificate approve=ask", 35,
            "a client certificate is shown before there is a request that could wait for approve=",
            "leave certificate"
        ),
        ("proxy://p.example:8080 approve=ask", 24, "approve= has no effect for a parent proxy", "remove"),
        ("a.example dry-run=maybe", 19, #"unknown value "maybe" of dry-run"#, "yes or no"),
        ("https://a.example/x", 1, #"a site must not have a path or query: "https://a.example/x""#, "paths=/api/**"),
    ]

    @Test(arguments: faults) func faultsHaveAPlaceAndAHint(
        row: (line: String, column: Int, message: String, hint: String)
    ) {
        let problems = SiteListErrorTests.problems((name: "t.sites", text: row.line))
        #expect(problems.map(\.message) == [row.message])
        #expect(problems.first?.column == row.column)
        #expect(problems.first?.hint?.contains(row.hint) == true, "\(problems.first?.hint ?? "")")
    }

    /// The second line of a site, the column of the fault, and the message. The first line has `methods=GET`.
    static let differences: [(line: String, column: Int, message: String)] = [
        ("a.example methods=GET", 1, #""https://a.example" is already listed for the same requests at t.sites:1"#),
        (
            "  a.example methods=GET deny=yes", 3,
            #""https://a.example" is already listed for the same requests at t.sites:1"#
        ),
        ("a.example http2=no", 11, #"http2= differs from that of "https://a.example" at t.sites:1"#),
        ("a.example intercept=no", 11, #"intercept= differs from that of "https://a.example" at t.sites:1"#),
        ("a.example revocation=off", 11, #"revocation= differs from that of "https://a.example" at t.sites:1"#),
        (
            "a.example session=g cookies=c", 11, #"session= differs from that of "https://a.example" at t.sites:1"#
        ),
        (
            "a.example cross-site=https://b.example", 11,
            #"cross-site= differs from that of "https://a.example" at t.sites:1"#
        ),
    ]

    @Test(arguments: differences) func linesOfOneSiteAgreeOnConnections(
        row: (line: String, column: Int, message: String)
    ) {
        let problems = SiteListErrorTests.problems((name: "t.sites", text: "a.example methods=GET\n\(row.line)"))
        #expect(problems.map(\.message) == [row.message])
        #expect(problems.first?.line == 2 && problems.first?.column == row.column)
        #expect(problems.first?.hint?.isEmpty == false)
    }

    @Test func theSameRequestsMayBeWrittenInAnotherWay() {
        let problems = SiteListErrorTests.problems(
            (name: "t.sites", text: "a.example methods=GET,PUT paths=/a,/b\na.example paths=/b,/a methods=PUT,GET"))
        #expect(problems.map(\.line) == [2])
    }

    /// A list that is valid, and the remark about it; nil for none.
    static let remarks: [(lines: [String], remark: String?)] = [
        (["a.example methods=GET paths=/a/**,!/a/b/**"], nil),
        (["a.example paths=!/a/**"], nil),
        (["a.example paths=/**/x,!/a/**"], nil),
        (["a.example methods=TRACE"], "t.sites:1: TRACE is never forwarded to a listed site"),
        (
            ["a.example paths=/a/b,!/a/**"],
            #"t.sites:1: no request is one of these: the path "/a/b" is excepted with !"#
        ),
        (["a.example paths=/a/b,/c,!/a/**"], nil),
        (["a.example paths=!/**"], "t.sites:1: no request is one of these: every path is excepted with !"),
        (
            ["a.example paths=/a/b,/A/c,!/A/B,!/a/c"],
            "t.sites:1: the exception !/A/B has no effect: it is in none of the line's paths"
        ),
        (
            ["a.example paths=/a/b,/A/c,!/A/B,!/a/c case=ignore"],
            #"t.sites:1: no request is one of these: the path "/a/b" is excepted with !"#
        ),
        (["a.example paths=/a.,/b."], nil),
        (["a.example paths=/a.,/b case=ignore"], nil),
        (
            ["a.example paths=/a./b,/b*. case=ignore"],
            "t.sites:1: no request is one of these: with case=ignore, requests with a segment that ends with a dot or "
                + #"a space, as in "/a./b", are refused"#
        ),
        (
            ["a.example paths=/a/**,!/b/**"],
            "t.sites:1: the exception !/b/** has no effect: it is in none of the line's paths"
        ),
        (
            ["a.example", "a.example methods=GET deny=yes"],
            "t.sites:2: deny=yes has no effect: t.sites:1 is for all other requests"
        ),
    ]

    @Test(arguments: remarks) func whatCanNeverHappenIsRemarkedOn(row: (lines: [String], remark: String?)) throws {
        let list = try SiteList(files: [(name: "t.sites", text: row.lines.joined(separator: "\n"))])
        let remarks = list.remarks(credentials: nil, identities: nil)
        #expect(remarks.map(\.message) == [row.remark].compactMap(\.self))
        #expect(remarks.allSatisfy { !$0.hint.isEmpty })
    }

    @Test func allLinesOfASiteAreRemoved() throws {
        let text = "a.example methods=GET\nb.example\nhttps://a.example paths=/a\n"
        let pattern = try SiteListText.Subject(parsing: "a.example")
        #expect(SiteListText.remove(pattern, from: text) == "b.example\n")
    }
}
