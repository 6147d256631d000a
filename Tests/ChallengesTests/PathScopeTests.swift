// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

@Suite struct PathScopeTests {
    @Test(arguments: [
        ("/docs/index.html", "/docs/"), ("/docs/", "/docs/"), ("/docs", "/"), ("/", "/"), ("/a/b/c?x=/y/z", "/a/b/"),
        ("/a/b#/c/", "/a/"), ("/a//b", "/a//"), ("/a/%20/x", "/a/%20/"),
    ])
    func directoryEndsAtTheLastSlash(path: String, directory: String) {
        #expect(PathScope(challengedPath: path)?.directory == directory)
    }

    @Test(arguments: ["", "*", "docs/index.html", "?a", "/a/../b", "/./a", "/a/%2e%2E/b", "http://example.com/docs/"])
    func noScopeWithoutAPlainDirectory(path: String) {
        #expect(PathScope(challengedPath: path) == nil)
    }

    /// The first three are from RFC 7617 §2.2.
    @Test(arguments: [
        ("/docs/", true), ("/docs/test.doc", true), ("/docs/?page=1", true), ("/docs/a/b/c", true), ("/docs//x", true),
        ("/docs/..x/...", true), ("/docs/x?../..", true), ("/other/", false), ("/docs", false), ("/docs2/x", false),
        ("/", false),
        ("/DOCS/x", false), ("/%64ocs/x", false), ("*", false), ("", false), ("/docs/../x", false), ("/docs/..", false),
        ("/docs/./x", false), ("/docs/%2e%2E/x", false), ("/docs/.%2e/x", false), ("/docs/a%2F..%2Fx", false),
        ("/docs/a\\..\\x", false), ("/docs/a%5c..%5Cx", false), ("/docs/..;a=1/x", false), ("/docs/..%3Ba/x", false),
        ("//docs/x", false), ("/docs/?\u{301}", true), ("/docs/\u{301}../", true), ("/docs/x/../", false),
    ])
    func scopeIsAllAtOrBelowTheDirectory(path: String, isInside: Bool) throws {
        let scope = try #require(PathScope(challengedPath: "/docs/index.html"))
        #expect(scope.contains(path) == isInside)
    }
}
