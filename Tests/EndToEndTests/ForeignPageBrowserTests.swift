// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Access of pages to listed sites in real browsers, with the proxy and without it.
///
/// A browser alone has the credential of a site only if the person has signed in there. Chromium is signed in with
/// Basic, Digest and NTLM. A browser has neither Bearer, nor a session that another client has begun, nor a certificate
/// without a person who chooses it; with these, pages get no access.
///
/// One after the other, because all wait for the same visit. Firefox and the browser alone take minutes more, and run
/// if `COUNTERSIGN_LONG_TESTS` is set.
@Suite(.waiting, .serialized) struct ForeignPageBrowserTests {
    typealias Program = ForeignPageVisit.Program

    private static let isLong = ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] != nil
    private static let programs: [Program] = isLong ? [.chromium, .firefox] : [.chromium]

    private static let kinds = ["basic", "digest", "ntlm", "negotiate", "bearer", "certificate", "session", "api"]

    /// A page of another origin gets nothing, in no way, but for links.
    @Test(arguments: programs)
    func aPageOfAnotherOriginGetsNothing(program: Program) async throws {
        let visit = try await ForeignPageVisit.shared(program)
        let cells = visit.cells.filter { ForeignPageVisit.strangers.contains($0.page) }
        for page in ForeignPageVisit.strangers {
            for kind in Self.kinds {
                // It has tried.
                let ways = Set(cells.filter { $0.page == page && $0.kind == kind }.map(\.way))
                var expected: Set = [
                    "fetch-cors-include-GET", "fetch-cors-omit-GET", "fetch-no-cors-include-POST",
                    "fetch-no-cors-omit-GET", "fetch-no-cors-same-origin-POST", "img", "script", "style", "iframe",
                    "form-iframe-POST", "beacon",
                ]
                if ForeignPageVisit.linkedKinds.contains(kind) { expected.formUnion(["top-GET", "top-POST"]) }
                #expect(ways.isSuperset(of: expected), "\(page) \(kind): \(expected.subtracting(ways))")
            }
        }
        let answered = cells.filter(\.hadCredential)
        #expect(answered.filter { $0.way != "top-GET" }.isEmpty, "\(answered)")
    }

    /// The body is not readable either, with any Access-Control-Allow-Origin.
    @Test(arguments: programs)
    func aPageOfAnotherOriginReadsNothing(program: Program) async throws {
        let visit = try await ForeignPageVisit.shared(program)
        let read = visit.sites.pages.results.filter { query, outcome in
            query.hasPrefix("\(visit.name)-") && outcome.contains("secret")
        }.keys.map { $0.dropFirst(visit.name.utf8.count + 1) }
        #expect(read.filter { $0.hasPrefix("evil") || $0.hasPrefix("blog") }.isEmpty, "\(read)")
        // Permitted pages read responses that name them, and `*` publishes nothing.
        #expect(read.filter { $0.hasPrefix("wiki.api.") || $0.hasPrefix("app.api.") }.isEmpty, "\(read)")
        for page in ["wiki", "app"] { #expect(read.contains("\(page).named.fetch-cors-include-GET"), "\(read)") }
        #expect(read.contains("api.api.fetch-cors-include-GET"), "\(read)")
        // The refused request was delivered, with the site's own 401.
        #expect(visit.read("evil", "api", "fetch-cors-omit-GET") == "401 who?")
    }

    /// Pages that the person or a link opens, and the subresources of the site's own pages.
    @Test(arguments: programs)
    func nothingElseIsLost(program: Program) async throws {
        let visit = try await ForeignPageVisit.shared(program)
        for kind in Self.kinds {
            #expect(visit.hadCredential("typed", kind, "GET"), "\(kind)")
            for page in ForeignPageVisit.strangers where ForeignPageVisit.linkedKinds.contains(kind) {
                #expect(visit.hadCredential(page, kind, "top-GET"), "\(page) \(kind)")
            }
            for way in [
                "fetch-cors-include-GET", "fetch-no-cors-include-POST", "img", "script", "iframe", "form-iframe-POST",
            ] {
                #expect(visit.hadCredential("wiki", kind, way), "\(kind) \(way)")
            }
        }
        for kind in ["api", "session"] {
            for way in ["fetch-cors-include-GET", "fetch-cors-same-origin-POST", "img", "iframe", "form-iframe-POST"] {
                #expect(visit.hadCredential(kind, kind, way), "\(kind) \(way)")
            }
        }
        for way in ["fetch-cors-include-GET", "fetch-no-cors-include-POST", "img", "form-iframe-POST"] {
            #expect(visit.hadCredential("app", "api", way), "\(way)")
        }
    }

    @Test(arguments: programs)
    func aWebSocketCountsByItsOrigin(program: Program) async throws {
        let visit = try await ForeignPageVisit.shared(program)
        for kind in ["basic", "certificate"] {
            for page in ForeignPageVisit.strangers {
                #expect(visit.read(page, kind, "websocket") == "failed", "\(page) \(kind)")
            }
        }
    }

    /// The browser alone, in which the person is signed in, gives pages at least as much.
    @Test(.enabled(if: isLong)) func theBrowserAloneGivesPagesAsMuch() async throws {
        let alone = try await ForeignPageVisit.shared(.chromium, hasProxy: false)
        let proxied = try await ForeignPageVisit.shared(.chromium)
        for kind in ["basic", "digest", "ntlm", "api", "session"] {
            #expect(alone.hadCredential("typed", kind, "GET") || kind == "session", "\(kind): not signed in")
            for cell in proxied.cells
            where cell.kind == kind && cell.hadCredential && ForeignPageVisit.strangers.contains(cell.page) {
                #expect(alone.hadCredential(cell.page, kind, cell.way), "\(cell)")
            }
        }
        let more = alone.cells.filter { $0.hadCredential && $0.page == "evil" && $0.way != "top-GET" }
        #expect(more.filter { $0.way.hasPrefix("fetch-no-cors-omit") }.isEmpty, "\(more)")
    }
}
