// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignTestOrigin
import Synchronization
import Testing

@testable import CountersignSitePolicy

@Suite struct SiteListTests {
    static func list(_ text: String) throws -> SiteList {
        try SiteList(files: [(name: "AllowedSites/work.sites", text: text)])
    }

    static func origin(_ url: String) throws -> Origin { try Origin(url: url) }

    @Test func theLinesOfTheContractAreRead() throws {
        let list = try Self.list(
            """
            https://git.corp.example:8443                answer=basic charset=latin1
            https://*.sharepoint.corp.example            answer=ntlm,certificate domain=ACME
            wiki.corp.example                            # no scheme: https
            http://printer.corp.example                  answer=ntlm plaintext=yes
            https://pay.corp.example                     answer=certificate identity=laptop
            https://all.corp.example credential=other spn=HTTP/web.corp.example delegate=policy preempt=no intercept=no
            """)
        #expect(
            list.rules.map(\.pattern.description) == [
                "https://git.corp.example:8443", "https://*.sharepoint.corp.example", "https://wiki.corp.example",
                "http://printer.corp.example", "https://pay.corp.example", "https://all.corp.example",
            ])
        #expect(
            list.rules.map(\.answer) == [
                [.basic], [.certificate, .ntlm], AuthenticationScheme.usual, [.ntlm], [.certificate],
                AuthenticationScheme.usual,
            ])
        #expect(list.rules.map(\.domain) == [nil, "ACME", nil, nil, nil, nil])
        #expect(list.rules.map(\.charset) == [.latin1] + Array(repeating: .utf8, count: 5))
        #expect(list.rules.map(\.answersPlaintext) == [false, false, false, true, false, false])
        #expect(list.rules.map(\.identity) == [nil, nil, nil, nil, "laptop", nil])
        #expect(list.rules.map(\.credential) == Array(repeating: "enrollment", count: 5) + ["other"])
        #expect(list.rules.map(\.servicePrincipalName) == [nil, nil, nil, nil, nil, "HTTP/web.corp.example"])
        #expect(list.rules.map(\.delegatesByPolicy) == Array(repeating: false, count: 5) + [true])
        #expect(list.rules.map(\.preempts) == [true, true, true, true, true, false])
        #expect(list.rules.map(\.intercepts) == [true, true, true, true, true, false])
        #expect(list.rules[2].location == "AllowedSites/work.sites:3")
        #expect(list.rules[2].text == "wiki.corp.example                            # no scheme: https")
    }

    /// `broker` is not a scheme: alone, it permits no answer to a challenge.
    @Test func theBrokersHeaderIsForOneSite() throws {
        let list = try Self.list(
            """
            login.microsoftonline.com answer=broker
            a.example answer=basic
            b.example
            """)
        #expect(list.rules.map(\.usesBroker) == [true, false, false] && list.rules[0].answer == [])
        #expect(list.rules.map(\.answerText).prefix(2) == ["broker", "basic"])
        let both = try Self.list("https://LOGIN.microsoftonline.com:443 answer=broker,bearer").rules[0]
        #expect(both.usesBroker && both.answer == [.bearer] && both.answerText == "bearer,broker")
        #expect(try Self.list("a.example answer=none").rules[0].answerText == "none")
    }

    // MARK: Matching

    static let layered = """
        https://*.corp.example credential=corp
        https://*.eu.corp.example credential=eu
        https://wiki.eu.corp.example credential=wiki
        https://wiki.eu.corp.example:8443 credential=wiki8443
        http://plain.corp.example plaintext=yes credential=plain
        https://[2001:db8::1]:8443 credential=six
        10.0.0.1 credential=four
        """

    @Test(arguments: [
        ("https://wiki.eu.corp.example", "wiki"), ("https://WIKI.EU.CORP.EXAMPLE./path", "wiki"),
        ("https://wiki.eu.corp.example:8443", "wiki8443"), ("https://a.eu.corp.example", "eu"),
        ("https://a.b.eu.corp.example", "eu"), ("https://x.wiki.eu.corp.example", "eu"),
        ("https://eu.corp.example", "corp"),
        ("https://a.corp.example", "corp"), ("https://a.b.c.d.corp.example:443", "corp"),
        ("http://plain.corp.example", "plain"),
        ("https://[2001:DB8:0::1]:8443", "six"), ("https://10.0.0.1", "four"), ("https://[::ffff:10.0.0.1]", "four"),
        ("https://plain.corp.example", "corp"),
    ])
    func theMostSpecificLineWins(url: String, credential: String) throws {
        let list = try Self.list(Self.layered)
        let origin = try Self.origin(url)
        #expect(list.rule(for: origin)?.credential == credential)
        guard case .answer(let rule) = list.verdict(for: origin) else {
            Issue.record("\(list.verdict(for: origin)) for \(url)")
            return
        }
        #expect(rule.credential == credential)
    }

    @Test(arguments: [
        ("https://corp.example", "not on the list"), ("https://notcorp.example", "not on the list"),
        ("https://evilcorp.example", "not on the list"), ("https://a.corp.example.evil.test", "not on the list"),
        ("https://corp.example.", "not on the list"), ("https://a.corp.example:8443", "not on the list"),
        ("http://a.corp.example:8080", "listed for https only"),
        ("http://wiki.eu.corp.example", "listed for https only"),
        ("http://plain.corp.example:8080", "listed for https only"),
        ("https://wiki.eu.corp.example:9443", "not on the list with this scheme and port"),
        ("https://10.0.0.2", "not on the list"), ("https://10.0.0.1:444", "not on the list with this scheme and port"),
        ("https://[2001:db8::1]", "not on the list with this scheme and port"), ("https://example", "not on the list"),
        ("https://other.test", "not on the list"),
    ])
    func unlistedSitesAreTunnelledWithAReason(url: String, reason: String) throws {
        let list = try Self.list(Self.layered)
        let origin = try Self.origin(url)
        #expect(list.verdict(for: origin) == .tunnel(reason: Refusal(.notListed, reason)))
        #expect(list.rule(for: origin) == nil)
    }

    @Test func httpAndHttpsAreListedApart() throws {
        let list = try Self.list("https://a.corp.example answer=basic\nhttp://a.corp.example answer=ntlm plaintext=yes")
        #expect(list.rule(for: try Self.origin("https://a.corp.example"))?.answer == [.basic])
        #expect(list.rule(for: try Self.origin("http://a.corp.example"))?.answer == [.ntlm])
        let plain = try Self.list("http://b.corp.example")
        #expect(
            plain.verdict(for: try Self.origin("https://b.corp.example"))
                == .tunnel(reason: Refusal(.notListed, "listed for http only")))
    }

    @Test func aSiteThatIsNotInterceptedIsTunnelled() throws {
        let list = try Self.list("https://a.corp.example\nhttps://pinned.corp.example intercept=no")
        #expect(
            list.verdict(for: try Self.origin("https://pinned.corp.example"))
                == .tunnel(reason: Refusal(.notIntercepted, "AllowedSites/work.sites:2 says intercept=no")))
        #expect(list.rule(for: try Self.origin("https://pinned.corp.example"))?.intercepts == false)
    }

    @Test(arguments: ["https://a--b-.corp.example", "https://xn--i-7iq.corp.example", "https://-a.corp.example"])
    func aNameThatNoLineCouldHoldIsRefusedBelowAListedOne(_ url: String) throws {
        let origin = try Self.origin(url)
        let listed = try Self.list(Self.layered)
        guard case .refuse(let reason) = listed.verdict(for: origin) else {
            Issue.record("\(listed.verdict(for: origin))")
            return
        }
        #expect(reason.text.contains("AllowedSites/work.sites:1"))
        #expect(listed.rule(for: origin) == nil)
        #expect(try Self.list("other.example").verdict(for: origin) == .tunnel(reason: .unlisted))
        #expect(
            try Self.list("*.corp.example intercept=no").verdict(for: origin)
                == .tunnel(reason: Refusal(.notIntercepted, "AllowedSites/work.sites:1 says intercept=no")))
    }

    @Test(arguments: ["WIKI.corp.example", "wiki.corp.example.", "user@wiki.corp.example", "wiki.corp.example:443", ""])
    func anOriginThatWasNotMadeCanonicalIsRefused(_ host: String) throws {
        let list = try Self.list("wiki.corp.example")
        let origin = Origin(scheme: .https, host: host, port: 443)
        guard case .refuse = list.verdict(for: origin) else {
            Issue.record("\(list.verdict(for: origin))")
            return
        }
        #expect(list.rule(for: origin) == nil)
    }

    @Test func theEmptyListTunnelsAll() throws {
        for list in [SiteList.empty, try SiteList(files: []), try Self.list("# nobody\n\n")] {
            #expect(list.rules.isEmpty)
            #expect(
                list.verdict(for: try Self.origin("https://example.com"))
                    == .tunnel(reason: Refusal(.notListed, "no site is listed")))
        }
    }

    @Test func tenThousandLinesTakeNoLongerThanTen() throws {
        func seconds(_ count: Int) throws -> Double {
            let lines = (0..<count).map { "https://s\($0).corp\($0 % 7).example" } + ["https://*.wild.example"]
            let list = try Self.list(lines.joined(separator: "\n"))
            #expect(list.rules.count == count + 1)
            let hit = Origin(scheme: .https, host: "s7.corp0.example", port: 443)
            let wild = Origin(scheme: .https, host: "a.b.c.d.wild.example", port: 443)
            let miss = Origin(scheme: .https, host: "a.b.c.d.other.example", port: 443)
            var found = 0
            let best = (0..<5).map { _ in
                ContinuousClock().measure {
                    for _ in 0..<200 {
                        found += list.rule(for: hit) == nil ? 0 : 1
                        found += list.rule(for: wild) == nil ? 0 : 1
                        found += list.rule(for: miss) == nil ? 0 : 1
                    }
                } / .seconds(1)
            }
            #expect(found == 5 * 200 * 2)
            return best.min() ?? 0
        }
        #expect(try seconds(10_000) < 8 * seconds(10))
    }

    // MARK: The hosts of the interception CA

    @Test func eachInterceptedHostIsNamedOnce() throws {
        let list = try Self.list(
            """
            https://a.corp.example
            https://a.corp.example:8443
            https://*.b.corp.example
            https://b.corp.example
            https://pinned.corp.example intercept=no
            http://plain.corp.example plaintext=yes
            https://10.0.0.1
            https://[2001:db8::1]:8443
            """)
        #expect(list.interceptedNames.map(\.name) == ["a.corp.example", "b.corp.example", "b.corp.example"])
        #expect(list.interceptedNames.map(\.includesSubdomains) == [false, true, false])
        #expect(list.interceptedAddresses.map(\.text) == ["10.0.0.1", "2001:db8::1"])
        #expect(list.interceptedAddresses.map(\.addressBytes.count) == [4, 16])
    }

    /// The full list takes longer to read than everything else that a proxy reads when it starts.
    @Test func theListIsReadOnceAndOnlyForAWildcard() throws {
        let count = Mutex(0)
        let list = PublicSuffixes {
            count.withLock { $0 += 1 }
            return Array("co.uk\n公司.cn".utf8)
        }
        _ = try SiteList(files: [("a.sites", "https://www.example.co.uk\nhttp://intranet\n")], publicSuffixes: list)
        #expect(count.withLock { $0 } == 0)
        #expect(throws: SiteListError.self) {
            try SiteList(files: [("a.sites", "https://*.co.uk\nhttps://*.公司.cn\n")], publicSuffixes: list)
        }
        _ = try SiteList(files: [("a.sites", "https://*.example.co.uk\n")], publicSuffixes: list)
        #expect(count.withLock { $0 } == 1)
    }

    @Test func theCommittedExampleParsesAndListsNobody() throws {
        let text = TextFile.text("\(Tool.repository)/AllowedSites/example.sites")
        #expect(text.contains("answer="))
        #expect(text.split(separator: "\n").count <= 27)
        #expect(try SiteList(files: [(name: "AllowedSites/example.sites", text: text)]).rules.isEmpty)
        let shown = text.split(separator: "\n").filter { $0.hasPrefix("#   ") }.map { $0.dropFirst(4) }
        #expect(try Self.list(shown.joined(separator: "\n")).rules.count >= 5)
    }
}
