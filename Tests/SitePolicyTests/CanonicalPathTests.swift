// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSitePolicy

@Suite struct CanonicalPathTests {
    static func path(_ target: String) throws(CanonicalPath.Fault) -> CanonicalPath {
        try CanonicalPath(ArraySlice(target.utf8))
    }

    /// A target, and the segments that are compared.
    static let paths: [(target: String, segments: [String])] = [
        ("/", []), ("/a", ["a"]), ("/a/b/c", ["a", "b", "c"]), ("/A/b", ["A", "b"]),
        // A slash at the end, and empty segments.
        ("/a/", ["a"]), ("//", []), ("///", []), ("/a//b", ["a", "b"]), ("/a///b//", ["a", "b"]),
        // A target that looks like an authority is a path (RFC 9112 §3.2.1).
        ("/https://evil.example/a", ["https:", "evil.example", "a"]),
        ("/@evil.example/a", ["@evil.example", "a"]), ("/a:80/b", ["a:80", "b"]),
        // Query.
        ("/a?b", ["a"]), ("/a?", ["a"]), ("/a/?/../b", ["a"]), ("/?/a", []), ("/a?%2f%zz\\", ["a"]),
        // Dot segments.
        ("/.", []), ("/./", []), ("/..", []), ("/../", []), ("/../..", []), ("/.//", []),
        ("/a/.", ["a"]), ("/a/..", []),
        ("/a/./b", ["a", "b"]), ("/a/../b", ["b"]), ("/a/b/../c", ["a", "c"]), ("/a/b/../../c", ["c"]),
        ("/../a", ["a"]), ("/a/../../b", ["b"]), ("/./../a", ["a"]), ("/a/b/..", ["a"]), ("/a/b/../", ["a"]),
        ("/a/b/.", ["a", "b"]), ("/a//b/../c", ["a", "c"]), ("/.a", [".a"]), ("/..a", ["..a"]), ("/a.", ["a."]),
        ("/a..", ["a.."]), ("/...", ["..."]), ("/a/.../b", ["a", "...", "b"]), ("/.a./..b", [".a.", "..b"]),
        // Percent encoding of characters that do not separate anything.
        ("/%61", ["a"]), ("/%41", ["A"]), ("/%7e", ["~"]), ("/%7E", ["~"]), ("/%2d%5f%30", ["-_0"]),
        ("/%61%70%69/v1", ["api", "v1"]), ("/a%20b", ["a b"]), ("/a%40b", ["a@b"]), ("/a%3Ab", ["a:b"]),
        ("/a%2Cb", ["a,b"]), ("/a%2Ab", ["a*b"]), ("/a%21", ["a!"]), ("/a%25", ["a%"]), ("/a%25b", ["a%b"]),
        ("/100%25ok", ["100%ok"]), ("/a+b", ["a+b"]), ("/a%2Bb", ["a+b"]),
        ("/%C3%B6", ["ö"]), ("/%c3%b6", ["ö"]), ("/ö", ["ö"]), ("/%E2%82%AC/%F0%9F%98%80", ["€", "😀"]),
        ("/%EF%BC%8F", ["／"]), ("/\"<>^`{|}", ["\"<>^`{|}"]),
        // Parameters of segments.
        ("/a;b", ["a"]), ("/a;b=c/d", ["a", "d"]), ("/a;/b", ["a", "b"]), ("/a;b;c/d;e", ["a", "d"]), ("/;a", []),
        ("/a/;b/c", ["a", "c"]), ("/a;b=%41", ["a"]), ("/a;b=../c", ["a", "c"]),
        ("/a;jsessionid=1?b", ["a"]), ("/a.;b", ["a."]),
    ]

    @Test(arguments: paths) func everySpellingHasOneForm(row: (target: String, segments: [String])) throws {
        let path = try Self.path(row.target)
        #expect(path.segments.map { String(decoding: $0, as: UTF8.self) } == row.segments)
    }

    /// A target, and why it cannot be compared.
    static let faults: [(target: String, fault: CanonicalPath.Fault)] = [
        ("/;/a", .emptyBeginning), ("/;x=1/a", .emptyBeginning), ("/./;/a", .emptyBeginning),
        ("//a", .emptyBeginning), ("//evil.example/a", .emptyBeginning), ("///a//b", .emptyBeginning),
        ("/a%3Fb", .encodedQuery), ("/a%23b", .encodedQuery), ("/a%2520b", .encodedTwice), ("/%2541", .encodedTwice),
        ("", .noPath), ("*", .noPath), ("a", .noPath), ("?a", .noPath), ("https://a.example/b", .noPath),
        ("a.example:443", .noPath), ("\\a", .noPath), ("%2fa", .noPath),
        ("/#", .fragment), ("/a#b", .fragment), ("/a/#/../b", .fragment),
        ("/%2e", .encodedDot), ("/%2E", .encodedDot), ("/%2e%2e", .encodedDot), ("/a/%2e%2e/b", .encodedDot),
        ("/a/.%2e/b", .encodedDot), ("/a/%2e./b", .encodedDot), ("/a%2eb", .encodedDot), ("/a/%2e%2E%2fb", .encodedDot),
        ("/%2f", .encodedSlash), ("/a%2Fb", .encodedSlash), ("/a/..%2fb", .encodedSlash),
        ("/a%2f..%2fb", .encodedSlash),
        ("/%5c", .encodedBackslash), ("/a%5Cb", .encodedBackslash), ("/a/..%5cb", .encodedBackslash),
        ("/a\\b", .backslash), ("/\\", .backslash), ("/a/..\\b", .backslash), ("/a/..;\\b", .backslash),
        ("/a%3bb", .encodedSemicolon), ("/a/..%3B/b", .encodedSemicolon), ("/a;b%3b", .encodedSemicolon),
        ("/%00", .control), ("/a%00.html", .control), ("/a%0d%0ab", .control), ("/a%09", .control), ("/%7f", .control),
        ("/a\0b", .control), ("/a\tb", .control), ("/a\u{7F}", .control), ("/a;%00", .control),
        ("/%", .malformedEncoding), ("/%4", .malformedEncoding), ("/a%", .malformedEncoding),
        ("/%zz", .malformedEncoding), ("/%4g", .malformedEncoding), ("/%u002e", .malformedEncoding),
        ("/% 41", .malformedEncoding), ("/%+1", .malformedEncoding), ("/%2/e", .malformedEncoding),
        ("/a;%4", .malformedEncoding),
        ("/%252e%252e", .encodedTwice), ("/%252E", .encodedTwice), ("/a%252fb", .encodedTwice),
        ("/a%255cb", .encodedTwice), ("/%25%32%65", .encodedTwice), ("/%25%32f", .encodedTwice),
        ("/a%253bb", .encodedTwice), ("/%2500", .encodedTwice),
        ("/%25252e", .encodedTwice), ("/%25c0%25ae", .encodedTwice), ("/%25u002e", .encodedTwice),
        ("/a;b=%252e", .encodedTwice),
        // Overlong, cut and stray octets of UTF-8; surrogates; beyond Unicode.
        ("/%c0%ae", .notUTF8), ("/%C0%AF", .notUTF8), ("/%e0%80%ae", .notUTF8), ("/%e0%80%af", .notUTF8),
        ("/%f0%80%80%ae", .notUTF8), ("/%f8%80%80%80%ae", .notUTF8), ("/%fc%80%80%80%80%af", .notUTF8),
        ("/a/%c0%ae%c0%ae/b", .notUTF8), ("/%c1%9c", .notUTF8), ("/%80", .notUTF8), ("/%c3", .notUTF8),
        ("/%c3/%b6", .notUTF8), ("/%e9", .notUTF8), ("/%ff", .notUTF8), ("/%ed%a0%80", .notUTF8),
        ("/%f4%90%80%80", .notUTF8),
        ("/a/..;/b", .dotsWithParameters), ("/a/..;b/c", .dotsWithParameters), ("/a/.;/b", .dotsWithParameters),
        ("/..;", .dotsWithParameters), ("/a/..;?b", .dotsWithParameters),
        ("/a//../b", .dotsAfterEmptySegment), ("//../a", .emptyBeginning),
        // The origin would get two slashes at the beginning.
        ("/.//a", .emptyBeginning), ("/././/a/b", .emptyBeginning), ("/..//a", .emptyBeginning),
        ("/x/..//evil.example/a", .emptyBeginning), ("/x/.././/a?b", .emptyBeginning),
        ("/a/b//../../c", .dotsAfterEmptySegment),
        ("/a/;b/../c", .dotsAfterEmptySegment), ("/a//./../b", .dotsAfterEmptySegment),
    ]

    @Test(arguments: faults) func whatServersReadDifferentlyIsNotCompared(
        row: (target: String, fault: CanonicalPath.Fault)
    ) {
        #expect(throws: row.fault) { try Self.path(row.target) }
    }

    @Test(
        arguments: [
            ("/a/b", nil), ("/", nil), ("/a/..b/.c/d.", nil), ("/a?/../b", nil), ("*", nil), ("/.", "/"), ("/..", "/"),
            ("/../..", "/"), ("/a/.", "/a/"), ("/a/..", "/"), ("/a/./b", "/a/b"), ("/a/../b", "/b"),
            ("/a/b/../c", "/a/c"), ("/a/b/../../c", "/c"), ("/../a", "/a"), ("/a/b/..", "/a/"), ("/a/b/../", "/a/"),
            ("/a/../b?c=/../d", "/b?c=/../d"), ("/a;x/../b", "/b"), ("/%61/./b", "/%61/b"), ("/a//./b", "/a//b"),
        ] as [(String, String?)])
    func theOriginGetsThePathThatWasCompared(target: String, expected: String?) throws {
        let clean = CanonicalPath.withoutDotSegments(ArraySlice(target.utf8))
        #expect(clean.map { String(decoding: $0, as: UTF8.self) } == expected)
        guard let clean, target != "*" else { return }
        #expect(try CanonicalPath(clean[...]) == Self.path(target))
    }

    @Test func rawOctetsThatAreNotUTF8AreNotCompared() {
        #expect(throws: CanonicalPath.Fault.notUTF8) { try CanonicalPath([0x2F, 0xC0, 0xAE]) }
    }

    @Test func everyFaultHasACase() {
        let seen = Set(Self.faults.map(\.fault)).union([.droppedEnd])
        #expect(seen == Set(CanonicalPath.Fault.allCases))
    }

    @Test func caseIsIgnoredBeyondASCIIToo() throws {
        let path = try Self.path("/API/%C3%96/V1").ignoringCase()
        #expect(path.segments.map { String(decoding: $0, as: UTF8.self) } == ["api", "ö", "v1"])
    }

    @Test(arguments: ["/a.", "/a./b", "/a/b%20", "/a /b", "/a.../b"]) func endsThatFileSystemsDropAreNotCompared(
        target: String
    ) throws {
        let path = try Self.path(target)
        #expect(throws: CanonicalPath.Fault.droppedEnd) { try path.ignoringCase() }
    }
}
