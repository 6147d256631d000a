// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignChallenges

/// A ticket contains no password, so no account is locked because of it.
@Suite struct TicketBreakerTests {
    private static let request = Breaker.RequestTag(method: "GET", target: "/")
    private static let refusal = Breaker.Decision.refused(
        reason: Refusal(
            .blocked("Kerberos ticket"),
            "credential \"Kerberos ticket\" was rejected here and has not changed since"))

    private func key(_ host: String, version: UInt64 = 0) -> Breaker.Key {
        let site = Origin(scheme: .https, host: host, port: 443)
        return Breaker.Key(
            space: AuthenticationSpace(origin: site, realm: nil, scheme: .negotiate),
            credential: CredentialReference.ticket.ticket(version: version, at: site))
    }

    private func end(_ breaker: inout Breaker, _ key: Breaker.Key, _ result: Breaker.Result, at now: Int64 = 0) {
        breaker.attemptBegan(key, for: Self.request, owner: 1, at: now)
        _ = breaker.attemptEnded(key, for: Self.request, result, owner: 1, at: now)
    }

    @Test func rejectionsAreForOneSiteAndOneTicket() {
        var breaker = Breaker()
        for host in ["a.example", "b.example"] { end(&breaker, key(host), .rejected) }
        #expect(breaker.decide(key("a.example"), for: Self.request, at: 0) == Self.refusal)
        #expect(breaker.decide(key("c.example"), for: Self.request, at: 0) == .mayTry)
        #expect(breaker.decide(key("a.example", version: 1), for: Self.request, at: 0) == .mayTry)
    }

    @Test(arguments: [Breaker.Result.unanswered, .unknown, .inconclusive])
    func silenceDoesNotCount(result: Breaker.Result) {
        var breaker = Breaker()
        for _ in 0..<9 { end(&breaker, key("a.example"), result) }
        #expect(breaker.decide(key("a.example"), for: Self.request, at: 0) == .mayTry)
        end(&breaker, key("a.example"), .accepted)
        for _ in 0..<9 { end(&breaker, key("a.example"), result) }
        #expect(breaker.decide(key("a.example"), for: Self.request, at: 0) == .free)
    }

    @Test func theKDCIsNoSite() {
        let kdc = AuthenticationSpace.kdc(of: "CORP.EXAMPLE")
        #expect(kdc.isKDC && kdc.place == "the KDC" && !kdc.overlaps(.kdc(of: "OTHER.EXAMPLE")))
        let space = key("a.example").space
        #expect(!space.isKDC && space.place == "https://a.example:443")
    }
}
