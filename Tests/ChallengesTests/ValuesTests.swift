// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignChallenges

@Suite struct ValuesTests {
    @Test(arguments: [
        (Origin(scheme: .https, host: "a.example", port: 443), "a.example", "https://a.example:443"),
        (Origin(scheme: .http, host: "a.example", port: 443), "a.example:443", "http://a.example:443"),
        (Origin(scheme: .http, host: "2001:db8::1", port: 80), "[2001:db8::1]", "http://[2001:db8::1]:80"),
        (Origin(scheme: .https, host: "::1", port: 8443), "[::1]:8443", "https://[::1]:8443"),
    ])
    func anOriginIsWrittenAsItStandsInAURI(origin: Origin, authority: String, description: String) {
        #expect(origin.authority == authority)
        #expect(origin.description == description)
    }

    @Test(arguments: [
        (ThreeChecks(site: .no("a")), "a", false),
        (ThreeChecks(site: .yes("a"), challenge: .no("b"), credential: .no("c")), "b", false),
        (ThreeChecks(site: .yes("a"), challenge: .yes("b"), credential: .no("c")), "c", false),
        (ThreeChecks(site: .yes("a"), challenge: .yes("b")), nil, false),
        (ThreeChecks(site: .yes("a"), challenge: .yes("b"), credential: .yes("c")), nil, true),
    ])
    func theFirstCheckThatFailedIsTheReason(checks: ThreeChecks, failure: String?, answers: Bool) {
        #expect(checks.failure == failure)
        #expect(checks.answers == answers)
    }

    /// RFC 5929 §4.
    @Test func endPointBindingHasItsPrefix() {
        let binding = ChannelBinding.tlsServerEndPoint(certificateHash: [0xAB, 0xCD])
        #expect(binding.applicationData == Array("tls-server-end-point:".utf8) + [0xAB, 0xCD])
    }
}
