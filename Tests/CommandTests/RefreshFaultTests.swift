// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import CountersignTestOrigin
import Testing

/// What a server can do wrong during a refresh: the identity works as it did, and the next refresh goes on.
struct RefreshFaultTests {
    private func enrolled() throws -> EnrolledSandbox {
        let place = try EnrolledSandbox()
        let result = try place.enroll()
        try #require(result.status == 0, "\(result.said)")
        return place
    }

    /// The identity is what it was, and a refresh by a server without faults succeeds.
    private func check(_ place: EnrolledSandbox, is leaf: Certificate, _ said: String) throws {
        #expect(try place.leaf() == leaf, "\(said)")
        #expect(try place.identity()?.leaf == leaf, "\(said)")
        #expect(try place.isVerified(), "\(said)")
        try place.control()
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.leaf() != leaf)
        #expect(try place.vault.contents.pendingEnrollments.isEmpty)
        #expect(try place.vault.contents.enrollments["laptop"]?.failures == 0)
    }

    @Test(arguments: EnrollTests.faults)
    func theIdentityStays(fault: String, said: String) throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        // The credential's way is no way out of this one.
        try place.sandbox.succeed("credential", "remove", "enrollment")
        try place.control(["fault": fault, "faultFor": "simplereenroll"])
        let result = try place.refresh("laptop")
        #expect(result.status == 1, "\(result.said)")
        #expect(try place.vault.contents.enrollments["laptop"]?.failures == 1)
        try place.set(credential: ESTServer.password)
        try check(place, is: leaf, result.said)
    }

    @Test(arguments: ["html", "cut-inside-head", "reset", "500"], ["cacerts", "csrattrs"])
    func itStaysAtEveryStage(fault: String, operation: String) throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["fault": fault, "faultFor": operation])
        let result = try place.refresh("laptop")
        #expect(result.status == 1, "\(result.said)")
        try check(place, is: leaf, result.said)
    }

    @Test func anAuthorityThatChangedIsNotFollowed() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["issuer": "other-ca", "cacerts": ["other-ca"], "server": "server-other"])
        let result = try place.refresh("laptop")
        #expect(result.status == 1)
        #expect(result.error.contains("trust"), "\(result.said)")
        try check(place, is: leaf, result.said)
    }

    /// RFC 4210 §4.4: the old authority has signed the new one.
    @Test func anAuthorityThatIsVouchedForBecomesAnAnchor() throws {
        let place = try enrolled()
        try place.control([
            "issuer": "new-ca", "cacerts": ["ca", "new-ca", "new-by-old"], "clientAuthorities": ["ca", "new-ca"],
        ])
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.isVerified(by: "new-ca"))
        #expect(try place.vault.contents.enrollments["laptop"]?.anchors.count == 2)
        // The server goes on with the new one alone.
        try place.control([
            "issuer": "new-ca", "cacerts": ["new-ca"], "server": "server-new", "clientAuthorities": ["new-ca"],
        ])
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
    }

    @Test func aCertificateThatItsOwnServerDoesNotTakeDoesNotReplaceTheOldOne() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["issuer": "new-ca", "cacerts": ["ca", "new-ca", "new-by-old"], "clientAuthorities": ["ca"]])
        for attempt in 1...2 as ClosedRange<UInt32> {
            let result = try place.refresh("laptop")
            #expect(result.status == 1)
            #expect(result.error.contains("does not accept the certificate that it issued"), "\(result.said)")
            #expect(try place.leaf() == leaf)
            #expect(try place.vault.contents.pendingEnrollments["laptop"]?.attempts == attempt)
        }
        // It was issued once and tried twice.
        #expect(place.server.requests("simplereenroll").count == 1)
        // Once the server takes it, it needs no other.
        try place.control(["cacerts": ["ca", "new-ca", "new-by-old"], "clientAuthorities": ["ca", "new-ca"]])
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simplereenroll").count == 1)
        #expect(try place.leaf() != leaf && place.isVerified(by: "new-ca"))
    }

    @Test func whatWasIssuedIsNotAskedForAgain() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        // The answer comes, the trial behind it does not.
        try place.control(["pending": 1, "retryAfter": "20"])
        #expect(try place.refresh("laptop", "--no-wait").status == 1)
        #expect(try place.leaf() == leaf)
        #expect(try place.refresh("laptop", "--no-wait").error.contains("has not decided"))
        #expect(place.server.requests("simplereenroll").count == 1)
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simplereenroll").count == 2)
    }

    @Test func aRefusedCredentialIsTriedOnceAndAgainWhenItChanged() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["password": "canary-changed", "revoked": [leaf.serialNumberHex]])
        func tries() -> Int { place.server.log.count { $0.authorization == "Basic" } }
        let before = tries()
        let first = try place.refresh("laptop")
        #expect(first.error.contains("refused the credential \"enrollment\""), "\(first.said)")
        #expect(tries() == before + 1)
        for _ in 0..<2 {
            let again = try place.refresh("laptop")
            #expect(again.status == 1)
            #expect(again.error.contains("is not tried again until it changes"), "\(again.said)")
        }
        #expect(tries() == before + 1)
        #expect(try place.identity()?.leaf == leaf)
        try place.set(credential: "canary-changed")
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf() != leaf)
    }
}
