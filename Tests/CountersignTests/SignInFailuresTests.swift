// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Testing

@testable import Countersign

@Suite(.waiting) struct SignInFailuresTests {
    private var record = SignInRecord(
        name: "work", profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "", scope: "",
        sites: [], refreshToken: nil, identityToken: nil, signedIn: 1000, expires: 0)

    /// Although the vault has recorded none of the failures.
    @Test(arguments: [(1, 2), (2, 4), (5, 32), (6, 60), (100, 60)] as [(UInt32, Int64)])
    func thePauseGrowsWithEachFailure(count: UInt32, pause: Int64) {
        var failures = SignInFailures()
        for number in 1...count { #expect(failures.note(record, at: 2000) == number) }
        #expect(failures.isPaused(record, at: 2000 + pause - 1))
        #expect(!failures.isPaused(record, at: 2000 + pause))
    }

    @Test func aClockThatIsSetBackDoesNotProlongThePause() {
        var failures = SignInFailures()
        _ = failures.note(record, at: 2000)
        #expect(!failures.isPaused(record, at: 1000))
    }

    @Test func aSuccessEndsThePause() {
        var failures = SignInFailures()
        _ = failures.note(record, at: 2000)
        failures.forget("work")
        #expect(!failures.isPaused(record, at: 2001) && failures.note(record, at: 2001) == 1)
    }

    @Test func aRenewalByAnotherProcessEndsThePause() {
        var failures = SignInFailures()
        _ = failures.note(record, at: 2000)
        var renewed = record
        renewed.renewed = 2001
        #expect(!failures.isPaused(renewed, at: 2001) && failures.isPaused(record, at: 2001))
    }

    @Test func aNewSignInHasNoPause() {
        var failures = SignInFailures()
        _ = failures.note(record, at: 2000)
        var next = record
        next.identifier = "0123456789abcdef0123456789abcdef"
        #expect(!failures.isPaused(next, at: 2001) && failures.isPaused(record, at: 2001))
    }
}
