// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSitePolicy

@Suite struct PathPatternTests {
    /// A pattern, the targets that it matches, and some that it does not match.
    static let patterns: [(pattern: String, matches: [String], others: [String])] = [
        ("/", ["/", "//", "/.", "/a/..", "/?a"], ["/a", "/index.html"]),
        ("/a", ["/a", "/a/", "/%61", "/a;b", "/a?b", "/b/../a"], ["/", "/b", "/A", "/a/b", "/aa", "/a."]),
        (
            "/api/v1/**", ["/api/v1", "/api/v1/", "/api/v1/a", "/api/v1/a/b/c", "/api//v1/a", "/x/../api/v1/a"],
            ["/api", "/api/v2/a", "/api/v10/a", "/api/v1x", "/API/v1/a", "/api/v1/../v2", "/v1/a"]
        ),
        ("/**", ["/", "/a", "/a/b/c/d"], []),
        ("/*", ["/a", "/a/", "/a?b"], ["/", "/a/b"]),
        ("/*/b", ["/a/b", "/x/b/"], ["/b", "/a/a/b", "/a/b/c"]),
        (
            "/**/info/refs", ["/info/refs", "/a/info/refs", "/a/b.git/info/refs"],
            ["/a/info", "/info/refs/x", "/a/xinfo/refs"]
        ),
        ("/a/**/z", ["/a/z", "/a/b/z", "/a/b/c/z", "/a/z/z"], ["/a", "/z", "/a/z/b"]),
        ("/**/a/**/b", ["/a/b", "/x/a/y/b", "/a/a/b/b"], ["/b/a", "/a/x"]),
        ("/**/a/b/**", ["/a/b", "/a/a/b", "/a/x/a/b/c"], ["/a/x/b"]),
        ("/*.git", ["/a.git", "/.git"], ["/a.gitx", "/a/b.git", "/git"]),
        ("/*.git/**", ["/a.git", "/a.git/info/refs"], ["/a/b.git"]),
        ("/a*b*c", ["/abc", "/axbyc", "/abbcc", "/abcc"], ["/ab", "/ac", "/acb", "/xabc"]),
        ("/a*a", ["/aa", "/axa"], ["/a"]),
        ("/*ab*ab*", ["/abab", "/xabyabz"], ["/aba", "/ab"]),
        ("/report-*.pdf", ["/report-1.pdf", "/report-.pdf"], ["/report.pdf", "/report-1.pdf.exe"]),
        ("/a%2Cb", ["/a,b", "/a%2cb"], ["/a"]),
        ("/a%2Ab", ["/a*b", "/a%2Ab"], ["/axb"]),
        ("/a%20b", ["/a%20b", "/a b"], ["/ab"]),
        ("/größe/**", ["/gr%C3%B6%C3%9Fe/1", "/größe"], ["/groesse"]),
        ("/gr%c3%b6%C3%9Fe", ["/größe"], ["/gr%C3%96ße"]),
        // A service and its methods in gRPC: the path is /SERVICE/METHOD.
        ("/helloworld.Greeter/*", ["/helloworld.Greeter/SayHello"], ["/helloworld.Greeters/SayHello", "/x/SayHello"]),
        ("/helloworld.Greeter/SayHello", ["/helloworld.Greeter/SayHello"], ["/helloworld.Greeter/sayHello"]),
    ]

    @Test(arguments: patterns) func patternsMatchWholePaths(
        row: (pattern: String, matches: [String], others: [String])
    ) throws {
        let pattern = try PathPattern(parsing: row.pattern)
        for target in row.matches {
            #expect(pattern.matches(try CanonicalPathTests.path(target)), "\(row.pattern) and \(target)")
        }
        for target in row.others {
            #expect(!pattern.matches(try CanonicalPathTests.path(target)), "\(row.pattern) and not \(target)")
        }
    }

    /// A path of a pattern is in the form in which paths are compared, so that one which can never match is an error.
    static let faults: [(pattern: String, offset: Int, message: String)] = [
        ("", 0, "begins with /"), ("api/**", 0, "begins with /"), ("**", 0, "begins with /"),
        ("https://a.example/b", 0, "begins with /"), ("\u{338}/a", 0, "begins with /"),
        ("/a?b", 2, "query"), ("/a;b", 2, "parameters"), ("/a\\b", 2, "backslash"),
        ("/a/", 3, "slash at the end"), ("/a//b", 3, "empty segments"), ("//", 1, "empty segments"),
        ("/a/./b", 3, "dot segments"), ("/..", 1, "dot segments"), ("/a/../b", 3, "dot segments"),
        ("/a**", 1, "whole segment"), ("/a/**b", 3, "whole segment"), ("/***", 1, "whole segment"),
        ("/**/**", 4, "follows"), ("/a%2fb", 1, "%2F"), ("/%2e%2e/a", 1, "%2E"), ("/a/%5c", 3, "%5C"),
        ("/%zz", 1, "hexadecimal"), ("/%c0%ae", 1, "UTF-8"), ("/%00", 1, "control"), ("/%252e", 1, "twice"),
    ]

    @Test(arguments: faults) func patternsThatCannotMatchAreErrors(
        row: (pattern: String, offset: Int, message: String)
    ) throws {
        let fault = try #require(throws: PathPattern.Fault.self) { try PathPattern(parsing: row.pattern) }
        #expect(fault.offset == row.offset)
        #expect(fault.message.contains(row.message), "\(fault.message)")
        #expect(!fault.hint.isEmpty)
    }

    @Test func caseIsIgnoredOnBothSides() throws {
        let pattern = try PathPattern(parsing: "/Api/*.PDF/Ö").ignoringCase()
        #expect(pattern.matches(try CanonicalPathTests.path("/aPI/x.pdf/%C3%B6").ignoringCase()))
    }
}
