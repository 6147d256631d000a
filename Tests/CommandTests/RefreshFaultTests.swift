// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

/// Server faults during a refresh: the identity keeps working and the next refresh continues.
@Suite(.waiting) struct RefreshFaultTests {
    private func enrolled() throws -> EnrolledSandbox {
        let place = try EnrolledSandbox()
        let result = try place.enroll()
        try #require(result.status == 0, "\(result.said)")
        return place
    }

    /// The identity is unchanged, and a refresh with a server without faults succeeds.
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
    func identityIsUnchanged(fault: String, said: String) throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        // Falling back to the credential does not help here.
        try place.sandbox.succeed("credential", "remove", "enrollment")
        try place.control(["fault": fault, "faultFor": "simplereenroll"])
        let result = try place.refresh("laptop")
        #expect(result.status == 1, "\(result.said)")
        #expect(try place.vault.contents.enrollments["laptop"]?.failures == 1)
        try place.set(credential: ESTServer.password)
        try check(place, is: leaf, result.said)
    }

    @Test(arguments: [
        ("html", "cacerts"), ("cut-inside-head", "cacerts"), ("reset", "cacerts"), ("500", "cacerts"),
        ("cut-inside-head", "csrattrs"), ("reset", "csrattrs"), ("500", "csrattrs"),
    ])
    func identityIsUnchangedAtEveryStage(fault: String, operation: String) throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["fault": fault, "faultFor": operation])
        let result = try place.refresh("laptop")
        #expect(result.status == 1, "\(result.said)")
        try check(place, is: leaf, result.said)
    }

    @Test func changedCAIsNotTrusted() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["issuer": "other-ca", "cacerts": ["other-ca"], "server": "server-other"])
        let result = try place.refresh("laptop")
        #expect(result.status == 1)
        #expect(result.error.contains("trust"), "\(result.said)")
        try check(place, is: leaf, result.said)
    }

    /// RFC 4210 §4.4: the old CA has signed the new one.
    @Test func crossSignedCABecomesAnAnchor() throws {
        let place = try enrolled()
        try place.control([
            "issuer": "new-ca", "cacerts": ["ca", "new-ca", "new-by-old"], "clientAuthorities": ["ca", "new-ca"],
        ])
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.isVerified(by: "new-ca"))
        #expect(try place.vault.contents.enrollments["laptop"]?.anchors.count == 2)
        // The server continues with only the new CA.
        try place.control([
            "issuer": "new-ca", "cacerts": ["new-ca"], "server": "server-new", "clientAuthorities": ["new-ca"],
        ])
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
    }

    @Test func certificateRejectedInTheTestHandshakeIsNotUsed() throws {
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
        // It was issued once and tested twice.
        #expect(place.server.requests("simplereenroll").count == 1)
        // Once the server accepts it, no other is requested.
        try place.control(["cacerts": ["ca", "new-ca", "new-by-old"], "clientAuthorities": ["ca", "new-ca"]])
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simplereenroll").count == 1)
        #expect(try place.leaf() != leaf && place.isVerified(by: "new-ca"))
    }

    @Test func issuedCertificateIsNotRequestedAgain() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        // The response arrives, but the test handshake fails.
        try place.control(["pending": 1, "retryAfter": "20"])
        #expect(try place.refresh("laptop", "--no-wait").status == 3)
        #expect(try place.leaf() == leaf)
        #expect(try place.refresh("laptop", "--no-wait").error.contains("has not yet decided"))
        #expect(place.server.requests("simplereenroll").count == 1)
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simplereenroll").count == 2)
    }

    @Test func rejectedCredentialIsTriedOnceUntilItChanges() throws {
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
