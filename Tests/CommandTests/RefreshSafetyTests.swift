// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// The vault's contents when a replacement or a pending request is interrupted.
@Suite(.waiting) struct RefreshSafetyTests {
    private func enrolled(_ control: [String: any Sendable] = [:]) throws -> EnrolledSandbox {
        let place = try EnrolledSandbox(control)
        let result = try place.enroll()
        try #require(result.status == 0, "\(result.said)")
        return place
    }

    /// rename(2) cannot replace a folder that is not empty.
    private func obstruct(_ path: String) throws {
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: "\(path)/in the way", withIntermediateDirectories: true)
    }

    @Test(arguments: [["enroll", "--replace"], ["refresh"]])
    func unwritableChainFileLosesNothing(command: [String]) throws {
        let place = try enrolled()
        let before = try place.leaf()
        try obstruct(place.chainPath())
        let result = command == ["refresh"] ? try place.refresh("laptop") : try place.enroll("--replace")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.error.contains("its chain file was not written"), "\(result.said)")
        let identity = try #require(try place.identity())
        #expect(identity.leaf != before)
        #expect(try place.vault.contents.enrollments["laptop"]?.previous?.chain.first == before.der)
        try FileManager.default.removeItem(atPath: place.chainPath())
        #expect(try place.refresh().output == "identity \"laptop\": chain file restored\n")
        #expect(try place.leaf() == identity.leaf && place.isVerified())
    }

    /// Killed before the server has responded.
    @Test func killedReplacementKeepsTheEnrolment() throws {
        let place = try enrolled()
        let (leaf, record) = (try place.leaf(), try place.vault.contents.enrollments["laptop"])
        let other = try ESTServer(#"{"fault": "slow", "faultFor": "cacerts"}"#)
        let result = try place.sandbox.sh(
            """
            countersign certificate enroll laptop --replace --est \(other.address()) \
            --anchor '\(other.certificate("ca"))' & \
            for i in $(seq 200); do grep -q slow '\(other.folder.file("requests"))' && break; sleep 0.05; done; \
            kill -KILL $!; wait $! && exit 9; true
            """)
        try #require(result.status == 0 && other.requests("cacerts").count == 1, "\(result.said)")
        #expect(try place.vault.contents.enrollments["laptop"] == record)
        #expect(try place.identity()?.leaf == leaf)
        // Automatic renewal still uses the previous server.
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.leaf() != leaf && place.isVerified())
        #expect(try place.vault.contents.enrollments["laptop"]?.server == record?.server)
        #expect(try place.vault.contents.pendingEnrollments.isEmpty)
        #expect(other.log.count == 1)
    }

    @Test func finallyRejectedReplacementKeepsTheEnrolment() throws {
        let place = try enrolled()
        let (leaf, record) = (try place.leaf(), try place.vault.contents.enrollments["laptop"])
        try place.control(["pending": 1, "retryAfter": "1"])
        #expect(try place.enroll("--replace", "--subject", "CN=other", "--no-wait").status == 3)
        #expect(try place.vault.contents.enrollments["laptop"] == record)
        try place.control(["authFor": [String](), "fault": "403", "faultFor": "simpleenroll"])
        #expect(try place.refresh("laptop").error.contains("403"))
        #expect(try place.vault.contents.pendingEnrollments.isEmpty)
        #expect(try place.vault.contents.enrollments["laptop"] == record)
        #expect(try place.identity()?.leaf == leaf)
        try place.control()
        #expect(try place.refresh("laptop").status == 0)
        #expect(try place.leaf().subject == "CN=jdoe")
    }

    /// None of these responses rejects the pending request.
    @Test(
        arguments: [
            ["fault": "html", "faultFor": "simpleenroll"], ["fault": "403", "faultFor": "cacerts"],
            ["password": "changed"], ["server": "server-other"], ["cacerts": ["other-ca"]],
        ] as [[String: any Sendable]])
    func pendingRequestSurvivesUnrelatedErrors(control: [String: any Sendable]) throws {
        let place = try EnrolledSandbox(["pending": 1, "retryAfter": "1"])
        #expect(try place.enroll("--no-wait").status == 3)
        let pending = try #require(try place.vault.contents.pendingEnrollments["laptop"])
        try place.control(control)
        for repeated in [false, true] {
            let result = repeated ? try place.enroll() : try place.refresh("laptop")
            #expect(result.status == 1, "\(result.said)")
            let kept = try #require(try place.vault.contents.pendingEnrollments["laptop"], "\(result.said)")
            #expect(kept.privateKey == pending.privateKey && kept.request == pending.request)
        }
        try place.control()
        if control["password"] != nil { try place.set(credential: ESTServer.password) }
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.identity()?.key.pkcs8 == pending.privateKey)
    }

    /// The server fails between the response and the test handshake.
    @Test func replacementCertificateIsKeptWhileItCannotBeTested() throws {
        let place = try enrolled()
        let leaf = try place.leaf()
        try place.control(["close": true, "faultAfter": 2, "fault": "reset", "faultFor": "cacerts"])
        let result = try place.enroll("--replace")
        #expect(result.status == 1, "\(result.said)")
        #expect(try place.identity()?.leaf == leaf)
        let asked = place.server.requests("simpleenroll").count
        let pending = try #require(try place.vault.contents.pendingEnrollments["laptop"])
        #expect(pending.state != .requested)
        try place.control()
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simpleenroll").count == asked)
        #expect(try place.identity()?.key.pkcs8 == pending.privateKey)
    }

    /// The clock was years ahead when the server deferred its decision.
    @Test func implausiblyLongWaitIsIgnored() throws {
        let place = try EnrolledSandbox(["pending": 1, "retryAfter": "1"])
        #expect(try place.enroll("--no-wait").status == 3)
        try place.vault.update { contents in
            var pending = try #require(contents.pendingEnrollments["laptop"])
            pending.retryAt += 10 * 366 * 86_400
            try contents.setPendingEnrollment(pending)
        }
        #expect(try place.refresh("laptop", "--no-wait").status == 0)
    }

    // MARK: Credentials

    /// For example a locked account, with a truncated second 401: the password is not sent again.
    @Test(arguments: ["403", "401-cut"])
    func rejectedCredentialIsNotSentAgain(fault: String) throws {
        let place = try enrolled()
        try place.control(["revoked": [try place.leaf().serialNumberHex], "fault": fault, "faultFor": "simpleenroll"])
        func tries() -> Int { place.server.requests("simpleenroll").count { $0.authorization == "Basic" } }
        let before = tries()
        for attempt in 1...2 {
            let result = try place.refresh("laptop")
            #expect(result.status == 1)
            #expect(
                result.error.contains(attempt == 1 ? "refused the credential" : "is not tried again until it changes"),
                "\(result.said)")
        }
        #expect(tries() == before + 1)
    }

    @Test(arguments: [["auth": "negotiate"], ["clientCertificate": "required"]] as [[String: any Sendable]])
    func unsentCredentialIsNotMarkedRejected(control: [String: any Sendable]) throws {
        let place = try enrolled()
        let revoked = [try place.leaf().serialNumberHex]
        try place.control(control.merging(["revoked": revoked]) { own, _ in own })
        let result = try place.refresh("laptop")
        #expect(result.status == 1 && !result.error.contains("refused the credential"), "\(result.said)")
        #expect(try place.vault.contents.enrollments["laptop"]?.refusedCredential == 0)
        try place.control(["revoked": revoked])
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
    }

    @Test func replacementDoesNotResendARejectedPassword() throws {
        let place = try enrolled()
        try place.control(["password": "canary-changed"])
        func tries() -> Int { place.server.log.count { $0.authorization == "Basic" } }
        let before = tries()
        #expect(try place.enroll("--replace").error.contains("refused the credential"))
        #expect(try place.enroll("--replace").error.contains("is not tried again until it changes"))
        #expect(tries() == before + 1)
        try place.set(credential: "canary-changed")
        #expect(try place.enroll("--replace").status == 0)
    }
}
