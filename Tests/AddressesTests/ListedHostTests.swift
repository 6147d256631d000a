// SPDX-License-Identifier: Apache-2.0

import CountersignSitePolicy
import Testing

@testable import CountersignAddresses

/// The list and the canonical form of hosts together.
@Suite struct ListedHostTests {
    /// Every spelling of a host is either refused, or answered if and only if it is the listed host.
    @Test func theAllowedHostIsTheHostThatIsConnectedTo() throws {
        let list = try SiteList(files: [
            (
                name: "a.sites",
                text: "https://example.com\nhttps://bücher.example\nhttps://127.0.0.1\nhttps://[2001:db8::1]"
            )
        ])
        let listed = Set(list.rules.map { $0.pattern.host.name.text })
        let spellings =
            HostNameTests.accepted.map(\.input) + HostNameTests.refused.map(\.input)
            + Fixture.rows("ipv6.tsv").map { "[\($0[0])]" } + Fixture.rows("idna-accepted.tsv").flatMap { $0 }
        var answered = 0
        for spelling in spellings {
            guard let origin = try? Origin(scheme: .https, authority: spelling) else { continue }
            let verdict = list.verdict(for: origin)
            if listed.contains(origin.host) {
                guard case .answer(let rule) = verdict else {
                    Issue.record("\(spelling): \(verdict)")
                    continue
                }
                #expect(rule.pattern.host.name.text == origin.host, "\(spelling)")
                answered += 1
            } else if case .answer(let rule) = verdict {
                Issue.record("\(spelling) became \(origin.host) and was answered by \(rule.text)")
            }
        }
        #expect(answered >= 10)
    }
}
