// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Testing

@testable import Countersign

@Suite(.waiting) struct SignInRenewalTimeTests {
    /// The lifetime, the part by which the process delays it, and the time since the token was obtained, in seconds.
    @Test(
        arguments: [
            (3600, 0, 3480), (3600, 1, 3540), (3600, 0.5, 3510), (480, 0, 360), (60, 0, 45), (60, 1, 52), (1, 1, 1),
        ] as [(Int64, Double, Int64)])
    func aTokenIsRenewedInTheLastQuarterOfItsLifetime(lifetime: Int64, part: Double, after: Int64) {
        #expect(Self.record(lifetime: lifetime).renewalTime(delayedBy: part) == 1000 + after)
    }

    @Test func aTokenThatDoesNotExpireIsNotRenewed() {
        var record = Self.record(lifetime: 0)
        record.expires = 0
        #expect(record.renewalTime(delayedBy: 0) == nil)
    }

    private static func record(lifetime: Int64) -> SignInRecord {
        SignInRecord(
            name: "work", profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "", scope: "",
            sites: [], refreshToken: nil, identityToken: nil, signedIn: 1000, expires: 1000 + lifetime)
    }
}
