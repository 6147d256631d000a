// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignAnswering

/// The requests that may use a credential, by the information in their fields about the page behind them.
@Suite struct RequestCauseTests {
    /// The fields of one request in the order site, mode, destination; `-` for none. Then others as `name=value`.
    struct Row: CustomTestStringConvertible, Sendable {
        let text: String
        let expected: String
        var testDescription: String { text }

        init(_ text: String, _ expected: String) {
            self.text = text
            self.expected = expected
        }
    }

    private static let site = Origin(scheme: .https, host: "git.corp.example", port: 443)
    private static let listed = ["https://wiki.corp.example", "http://old.corp.example"]
    private static let named = "https://app.partner.example"

    private static func cause(_ text: String, to site: Origin = site) -> RequestCause {
        var words = text.split(separator: " ").map(String.init)
        var fields: [(name: String, value: String)] = []
        var method = "GET"
        if let first = words.first, ["GET", "HEAD", "POST", "OPTIONS", "PUT"].contains(first) {
            method = words.removeFirst()
        }
        let isWebSocket = words.first == "websocket:"
        if isWebSocket { words.removeFirst() }
        for name in ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"] {
            guard let word = words.first, !word.contains("=") else { break }
            if word != "-" { fields.append((name, word)) }
            words.removeFirst()
        }
        for word in words {
            let halves = word.split(separator: "=", maxSplits: 1).map(String.init)
            let name = ["ua": "user-agent", "uir": "upgrade-insecure-requests"][halves[0]] ?? halves[0]
            fields.append((name, halves[1].replacing("_", with: " ")))
        }
        return RequestCause(to: site, isSafe: ["GET", "HEAD"].contains(method), isWebSocket: isWebSocket) { field in
            fields.filter { $0.name == field.rawValue }.map(\.value)
        }
    }

    private static func verdict(_ cause: RequestCause) -> RequestCause.Verdict {
        cause.verdict(crossSite: [try? PageOrigin(parsing: named)].compactMap(\.self)) {
            listed.contains($0.description)
        }
    }

    /// `own`, `navigation`, `permitted`, or the cause of the refusal; with the page, if there is one.
    private static func word(_ verdict: RequestCause.Verdict) -> String {
        switch verdict {
        case .own: "own"
        case .navigation: "navigation"
        case .permitted(let page, _): "permitted \(page)"
        case .refused(let refusal): "\(refusal.cause)" + (refusal.page.map { " \($0)" } ?? "")
        }
    }

    private static let other = "https://other.example"
    private static let wiki = "https://wiki.corp.example"

    static let rows: [Row] = [
        // No browser.
        Row("GET", "own"), Row("POST", "own"), Row("ua=curl/8", "own"), Row("uir=1", "own"),
        Row("POST ua=Mozilla/5.0_(Windows_NT_10.0;_en-US)_PowerShell/7.4.1", "own"),
        // Node's fetch sends one of the fields.
        Row("- cors ua=node", "own"), Row("POST - cors", "own"),
        // The person, and pages of the site.
        Row("none navigate document", "own"), Row("POST none navigate document", "own"),
        Row("POST none navigate document origin=null", "own"), Row("none no-cors empty", "own"),
        Row("none navigate document sec-purpose=prefetch referer=https://git.corp.example/", "own"),
        Row("none cors empty origin=chrome-extension://abcdefgh", "own"),
        Row("same-origin cors empty", "own"), Row("POST same-origin cors empty origin=https://git.corp.example", "own"),
        Row("POST same-origin navigate document origin=null", "own"), Row("same-origin navigate iframe", "own"),
        Row("same-origin same-origin serviceworker", "own"),
        Row("same-origin no-cors empty sec-purpose=prefetch", "own"),
        // A service worker of the site passes a navigation on.
        Row("same-origin navigate document referer=https://other.example/", "own"),
        // Pages of the same site that are listed.
        Row("same-site cors empty origin=\(wiki)", "permitted \(wiki)"),
        Row("POST same-site cors empty origin=\(wiki) referer=\(wiki)/page", "permitted \(wiki)"),
        Row("same-site no-cors image referer=\(wiki)/", "permitted \(wiki)"),
        Row("POST same-site navigate iframe origin=\(wiki)", "permitted \(wiki)"),
        Row("OPTIONS same-site cors empty origin=\(wiki)", "permitted \(wiki)"),
        Row("websocket: same-site websocket empty origin=\(wiki)", "permitted \(wiki)"),
        // Those that are not, and those over http.
        Row("same-site cors empty origin=https://blog.corp.example", "page https://blog.corp.example"),
        Row("same-site no-cors image referer=https://blog.corp.example/x", "page https://blog.corp.example"),
        Row("same-site no-cors image", "page"), Row("same-site cors empty origin=null", "page"),
        Row("same-site cors empty origin=null referer=\(wiki)/", "page"),
        Row("same-site cors empty origin=http://old.corp.example", "page http://old.corp.example"),
        Row("same-site cors empty origin=\(wiki):8443", "page \(wiki):8443"),
        Row("same-site navigate document", "navigation"), Row("POST same-site navigate document", "page"),
        // A listed page of another site.
        Row("cross-site cors empty origin=\(wiki)", "page \(wiki)"),
        // Another site.
        Row("cross-site navigate document", "navigation"), Row("HEAD cross-site navigate document", "navigation"),
        Row("cross-site navigate document referer=\(other)/", "navigation"),
        Row("none navigate document referer=\(other)/", "navigation"),
        Row("POST cross-site navigate document origin=\(other)", "page \(other)"),
        Row("POST cross-site navigate document origin=null", "page"), Row("PUT cross-site navigate document", "page"),
        Row("cross-site navigate iframe referer=\(other)/", "page \(other)"),
        Row("cross-site navigate frame", "page"), Row("cross-site navigate embed", "page"),
        Row("cross-site navigate object", "page"), Row("cross-site navigate fencedframe", "page"),
        Row("cross-site navigate empty", "page"), Row("cross-site navigate", "page"),
        Row("cross-site cors empty origin=\(other)", "page \(other)"),
        Row("OPTIONS cross-site cors empty origin=\(other)", "page \(other)"),
        Row("cross-site no-cors script referer=\(other)/", "page \(other)"), Row("cross-site no-cors style", "page"),
        Row("POST cross-site no-cors empty origin=\(other)", "page \(other)"), Row("cross-site", "page"),
        Row("nonsense navigate document", "navigation"), Row("nonsense cors empty", "page"),
        // WebSockets.
        Row("websocket: cross-site websocket empty origin=\(other)", "page \(other)"),
        Row("websocket: origin=\(other)", "page \(other)"), Row("websocket: origin=\(wiki)", "page \(wiki)"),
        Row("websocket: origin=https://git.corp.example", "own"), Row("websocket: ua=python", "own"),
        Row("websocket: cross-site navigate document", "page"), Row("websocket: ua=Mozilla/5.0", "silentBrowser"),
        // In advance, and for service workers. Chromium's speculation rules say that no page is behind the request.
        Row("none navigate document sec-purpose=prefetch referer=\(other)/", "prefetch \(other)"),
        Row("none navigate document sec-purpose=prefetch;prerender", "prefetch"),
        Row("cross-site navigate document sec-purpose=prefetch", "prefetch"),
        Row("cross-site navigate document sec-purpose=prefetch;prerender referer=\(other)/", "prefetch \(other)"),
        Row("cross-site navigate document sec-purpose=anything", "prefetch"),
        Row("same-site navigate document purpose=Prefetch", "prefetch"),
        Row("same-site no-cors empty sec-purpose=prefetch referer=\(wiki)/", "prefetch \(wiki)"),
        Row("same-site same-origin serviceworker referer=\(wiki)/sw.js", "serviceWorker \(wiki)"),
        Row("cross-site navigate serviceworker", "serviceWorker"),
        // Contradictions.
        Row("same-origin cors empty origin=\(other)", "contradiction \(other)"),
        Row("POST same-origin navigate document origin=\(wiki)", "contradiction \(wiki)"),
        Row("none navigate document origin=\(other)", "contradiction \(other)"),
        Row("none no-cors image referer=\(other)/", "contradiction \(other)"),
        Row("POST none navigate document referer=\(other)/", "contradiction \(other)"),
        Row("none navigate iframe", "contradiction"), Row("none no-cors object", "contradiction"),
        Row("cross-site cors empty origin=https://git.corp.example", "contradiction"),
        Row("same-site cors empty origin=https://git.corp.example", "contradiction"),
        Row("same-site cors empty origin=\(wiki) referer=\(other)/", "contradiction \(wiki)"),
        Row("same-origin cors empty sec-fetch-site=cross-site", "contradiction"),
        Row("same-origin,cross-site cors empty", "contradiction"), Row("none,none navigate document", "contradiction"),
        Row("cross-site navigate document sec-fetch-dest=image", "contradiction"),
        Row("cross-site navigate document sec-fetch-mode=cors", "contradiction"),
        Row("origin=https://git.corp.example origin=\(other)", "contradiction"),
        Row("referer=https://git.corp.example/ referer=\(other)/", "contradiction"),
        Row("same-origin cors empty origin=https://git.corp.example,\(other)", "contradiction"),
        Row("same-origin cors empty origin=nonsense", "contradiction"),
        // Without metadata: Origin, then Referer, then User-Agent.
        Row("origin=\(other)", "page \(other)"), Row("origin=null", "page"), Row("origin=\(wiki)", "page \(wiki)"),
        Row("origin=\(other) referer=https://git.corp.example/", "page \(other)"),
        Row("origin=https://git.corp.example ua=Mozilla/5.0", "own"),
        Row("origin=https://GIT.corp.example:443", "own"),
        Row("origin=http://git.corp.example", "page http://git.corp.example"),
        Row("referer=\(other)/", "page \(other)"), Row("referer=about:blank", "page"),
        Row("referer=https://git.corp.example/a?b ua=Mozilla/5.0", "own"),
        Row("referer=https://git.corp.example.evil.example/", "page https://git.corp.example.evil.example"),
        Row("referer=https://git.corp.example@evil.example/", "page"),
        Row("referer=https://git.corp.example:8443/", "page https://git.corp.example:8443"),
        Row("ua=Mozilla/5.0", "silentBrowser"), Row("ua=Mozilla/5.0 uir=1", "silentBrowser"),
        // The option.
        Row("cross-site cors empty origin=\(named)", "permitted \(named)"),
        Row("POST cross-site navigate iframe origin=\(named)", "permitted \(named)"),
        Row("cross-site no-cors image referer=\(named)/x", "permitted \(named)"),
        Row("origin=\(named)", "permitted \(named)"), Row("referer=\(named)", "permitted \(named)"),
        Row("websocket: origin=\(named)", "permitted \(named)"),
        Row("cross-site cors empty origin=https://app.partner.example:444", "page https://app.partner.example:444"),
        Row("cross-site cors empty origin=http://app.partner.example", "page http://app.partner.example"),
        Row("cross-site cors empty origin=https://a.app.partner.example", "page https://a.app.partner.example"),
        Row("cross-site navigate document sec-purpose=prefetch referer=\(named)/", "prefetch \(named)"),
        Row("same-origin cors empty origin=\(named)", "contradiction \(named)"),
    ]

    @Test(arguments: rows)
    func theFieldsDecide(row: Row) {
        #expect(Self.word(Self.verdict(Self.cause(row.text))) == row.expected, "\(row.text)")
    }

    /// Over http, browsers send no metadata.
    @Test(arguments: [
        Row("ua=Mozilla/5.0 uir=1", "own"), Row("ua=Mozilla/5.0", "silentBrowser"),
        Row("POST ua=Mozilla/5.0 uir=1", "silentBrowser"), Row("ua=curl/8", "own"),
        Row("referer=http://git.corp.example/a ua=Mozilla/5.0", "own"),
        Row("referer=http://other.example/ ua=Mozilla/5.0 uir=1", "page http://other.example"),
        Row("POST origin=http://other.example ua=Mozilla/5.0 uir=1", "page http://other.example"),
        Row("POST origin=http://git.corp.example ua=Mozilla/5.0", "own"),
        Row("referer=https://git.corp.example/ ua=Mozilla/5.0", "page https://git.corp.example"),
    ])
    func overHTTPOtherFieldsDecide(row: Row) {
        let site = Origin(scheme: .http, host: "git.corp.example", port: 80)
        #expect(Self.word(Self.verdict(Self.cause(row.text, to: site))) == row.expected, "\(row.text)")
    }

    /// Of four thousand combinations of the fields, none of a page of another origin is answered, unless it is a
    /// navigation or a page that is permitted.
    @Test func noCombinationOfFieldsIsMorePermissive() {
        var count = 0
        for method in ["GET", "POST"] {
            for site in ["same-site", "cross-site", "bogus"] {
                for mode in ["-", "navigate", "cors", "no-cors", "same-origin", "websocket"] {
                    for destination in ["-", "document", "iframe", "empty", "image", "script", "serviceworker"] {
                        for origin in [
                            "", " origin=null", " origin=\(Self.other)", " origin=https://blog.corp.example",
                        ] {
                            for more in [
                                "", " sec-purpose=prefetch", " referer=\(Self.other)/", " ua=Mozilla/5.0 uir=1",
                            ] {
                                let text = "\(method) \(site) \(mode) \(destination)\(origin)\(more)"
                                let isNavigation = method == "GET" && mode == "navigate" && destination == "document"
                                switch Self.verdict(Self.cause(text)) {
                                case .navigation: #expect(isNavigation && !more.contains("prefetch"), "\(text)")
                                case .own, .permitted: Issue.record("\(text) is answered")
                                case .refused: break
                                }
                                count += 1
                            }
                        }
                    }
                }
            }
        }
        #expect(count > 4_000)
    }

    // MARK: Consequences

    @Test func aRefusalNamesTheOptionWithThePage() throws {
        func text(_ fields: String) -> String? {
            guard case .refused(let refusal) = Self.verdict(Self.cause(fields)) else { return nil }
            return refusal.text
        }
        #expect(
            text("cross-site cors empty origin=\(Self.other)")
                == "a page of \(Self.other) asks; cross-site=\(Self.other) on the site's line permits it"
        )
        #expect(text("cross-site no-cors image") == "a page of another origin asks, without its name")
        #expect(
            text("cross-site navigate document sec-purpose=prefetch referer=\(Self.other)/")
                == "a page of https://other.example asks in advance (prefetch)")
        // The refusal names the origin in the form of the option.
        #expect(try PageOrigin(parsing: "https://other.example").description == Self.other)
    }

    @Test(arguments: [
        Row("none navigate document", "sameSite"),
        Row("cross-site navigate document", "crossSite(isSafeNavigation: true)"),
        Row("same-site navigate document", "sameSite"), Row("same-site cors empty origin=\(wiki)", "sameSite"),
        Row("cross-site cors empty origin=\(named)", "crossSite(isSafeNavigation: false)"),
        Row("cross-site navigate document referer=\(named)/", "crossSite(isSafeNavigation: true)"),
        Row("POST cross-site navigate document", "none"),
    ])
    func cookiesDependOnIt(row: Row) {
        let cause = Self.cause(row.text)
        let cookies = cause.cookies(Self.verdict(cause))
        #expect(cookies.map { "\($0)" } ?? "none" == row.expected, "\(row.text)")
    }

    @Test(arguments: [
        ("none navigate document", true), ("same-origin navigate iframe", true), ("- navigate document", true),
        ("cross-site navigate document", true), ("POST none navigate document", false),
        ("POST same-origin navigate document", false), ("POST cross-site navigate document", false),
        ("cross-site navigate iframe", false), ("same-site navigate iframe referer=\(wiki)/", false),
        ("same-site navigate document referer=\(wiki)/", true), ("cross-site navigate iframe referer=\(named)/", true),
        ("POST cross-site navigate iframe origin=\(named)", false), ("none cors empty", false), ("none", false),
        ("same-origin navigate document sec-purpose=prefetch", false), ("none navigate image", false), ("", false),
        ("websocket: same-origin navigate document", false),
    ])
    func theBrokerSignsInPagesOnly(fields: String, expected: Bool) {
        let cause = Self.cause(fields)
        let pages = [try? PageOrigin(parsing: Self.named)].compactMap(\.self)
        #expect(cause.permitsBroker(Self.verdict(cause), pages) == expected, "\(fields)")
    }
}
