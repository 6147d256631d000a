// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// The certificate of a sign-in belongs to that sign-in alone: its token enrols nothing else, and it ends with it.
@Suite(.waiting) struct SignInCertificateOwnerTests {
    private typealias Bench = SignInCertificateBench

    // MARK: The token

    /// A credential had the name of the sign-in before.
    @Test func theTokenEnrolsNoOtherIdentity() throws {
        let bench = try Bench()
        try bench.enrollOther(credential: "work")
        try bench.sandbox.succeed("credential", "remove", "work")
        try bench.write(nil)
        #expect(try bench.enroll().status == 0)
        try bench.control(["certificateIsEnough": false])
        let result = try bench.sandbox.countersign("certificate", "refresh", "laptop")
        #expect(result.status == 1, "\(result.said)")
        #expect(bench.tokensSent == 0)
    }

    @Test func anotherSignInDoesNotContinueAnAbandonedRequest() throws {
        let bench = try Bench(["fault": "slow", "faultFor": "simpleenroll"])
        try bench.kill()
        try bench.control([:])
        try bench.write(nil)
        #expect(try bench.enroll().status == 0)
        let before = bench.tokensSent
        #expect(try bench.vault.pendingEnrollments.isEmpty)
        #expect(try bench.sandbox.countersign("certificate", "refresh", "work").status == 1)
        #expect(bench.tokensSent == before)
    }

    /// As if the abandoned request had been left beside the new sign-in.
    @Test func theTokenIsNotSentForTheRequestOfAnotherSignIn() throws {
        let bench = try Bench(["pending": 1])
        #expect(try bench.enroll().status == 0)
        let before = bench.tokensSent
        try bench.change { contents in
            guard var pending = contents.pendingEnrollments["work"] else { throw HarnessError("nothing is pending") }
            pending.plan?.owner = EnrollmentRecord.Owner(signIn: "another")
            try contents.setPendingEnrollment(pending)
        }
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 1 && result.error.contains("there is no identity"), "\(result.said)")
        #expect(bench.tokensSent == before)
    }

    @Test func anExpiredTokenIsRenewedFirst() throws {
        let bench = try Bench(["pending": 1])
        #expect(try bench.enroll().status == 0)
        let before = try bench.vault.tokens["work"]
        try bench.expireToken()
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 0, "\(result.said)")
        #expect(bench.signIn.provider.requests.contains("POST /token refresh_token 200"))
        #expect(try bench.vault.tokens["work"]?.token != before?.token)
        #expect(try bench.identity != nil)
    }

    @Test func anExpiredTokenIsNotSent() throws {
        let bench = try Bench(["pending": 1], provider: ["refresh": false])
        #expect(try bench.enroll().status == 0)
        let before = bench.tokensSent
        try bench.expireToken()
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 1 && result.error.contains("access token of \"work\" has expired"), "\(result.said)")
        #expect(bench.tokensSent == before)
    }

    /// The server refuses one after the other.
    @Test func aRefusedPasswordIsNotTriedAgainAfterARefusedToken() throws {
        let bench = try Bench()
        try bench.sandbox.succeed(
            "credential", "set", "est", "--user", ESTServer.user, "--password-stdin", input: "wrong\n")
        try bench.write(["sites": [] as [String]])
        try bench.sandbox.succeed("sites", "add", bench.est.address(), "answer=basic", "credential=est")
        #expect(try bench.enroll().status == 0)
        func refused(_ control: [String: any Sendable]) throws -> String {
            try bench.control(["certificateIsEnough": false].merging(control) { _, new in new })
            let result = try bench.sandbox.countersign("certificate", "refresh", "work")
            #expect(result.status == 1, "\(result.said)")
            return result.error
        }
        func passwordsSent() -> Int { bench.est.log.filter { $0.authorization == "Basic" }.count }
        #expect(try refused(["auth": "basic"]).contains("refused the credential \"est\""))
        #expect(passwordsSent() == 1)
        #expect(try refused(["tokens": "other"]).contains("refused the access token \"work\""))
        let sent = bench.tokensSent
        _ = try refused(["auth": "basic"])
        _ = try refused(["tokens": "other"])
        #expect(passwordsSent() == 1 && bench.tokensSent == sent)
    }

    // MARK: Interrupted commands

    /// The second of two commands was killed when it had the certificate, and before it stored the sign-in.
    @Test func aCertificateIsNotInstalledWithoutItsSignIn() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let first = try bench.vault
        #expect(try bench.enroll().status == 0)
        let second = try bench.vault
        try bench.change { contents in
            guard let key = second.identityKeys["work"], var plan = second.enrollments["work"],
                let signIn = first.signIns["work"], let token = first.tokens["work"],
                let firstKey = first.identityKeys["work"], let firstRecord = first.enrollments["work"]
            else { throw HarnessError("the vault is not complete") }
            var pending = PendingEnrollment(name: "work", privateKey: key.privateKey, created: 1)
            pending.state = .issued(chain: plan.chain)
            plan.chain = []
            plan.previous = nil
            pending.plan = plan
            try contents.setPendingEnrollment(pending)
            try contents.setSignIn(signIn, accessToken: token.token)
            try contents.setIdentityKey(firstKey)
            try contents.setEnrollment(firstRecord)
        }
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 0, "\(result.said)")
        let vault = try bench.vault
        #expect(vault.leafSHA256(of: "work") != second.leafSHA256(of: "work"))
        #expect(vault.leafSHA256(of: "work") != first.leafSHA256(of: "work"))
        #expect(vault.enrollments["work"]?.owner == first.enrollments["work"]?.owner)
        #expect(vault.pendingEnrollments.isEmpty)
    }

    @Test func aRunningServerLeavesAnAbandonedRequest() throws {
        let bench = try Bench(["fault": "slow", "faultFor": "simpleenroll"])
        try bench.kill()
        try bench.control([:])
        let before = bench.est.log.count
        #expect(try bench.vault.plannedNames.isEmpty)
        let proxy = try bench.sandbox.serve()
        #expect(try bench.enroll().status == 0)
        #expect(!proxy.errorOutput.contains("cannot renew identity"), "\(proxy.errorOutput)")
        #expect(bench.est.log.dropFirst(before).contains { $0.authorization == "Bearer" })
        #expect(try bench.identity != nil)
    }

    /// A command was killed after it had removed the certificate from the vault.
    @Test func aLeftFileIsNoObstacle() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.change { contents in
            guard var record = contents.signIns["work"] else { throw HarnessError("there is no sign-in") }
            _ = contents.removeCertificate(of: record)
            record.formerSites = []
            try contents.updateSignIn(record)
        }
        #expect(bench.hasFile)
        #expect(try bench.enroll().status == 0)
        #expect(try bench.identity != nil)
        try bench.change { contents in
            guard let record = contents.signIns["work"] else { throw HarnessError("there is no sign-in") }
            _ = contents.removeCertificate(of: record)
        }
        #expect(try bench.sandbox.countersign("unenroll", "work").status == 0)
        #expect(!bench.hasFile)
    }

    // MARK: Other persons and services

    @Test func theCertificateOfAnotherPersonDoesNotComeBack() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        #expect(try bench.enroll().status == 0)
        #expect(try bench.vault.enrollments["work"]?.previous != nil)
        try bench.signIn.provider.change(["subject": "somebody-else"])
        #expect(try bench.enroll().status == 0)
        let vault = try bench.vault
        #expect(vault.signIns["work"]?.subject == "somebody-else")
        #expect(vault.enrollments["work"]?.previous == nil && vault.enrollments["work"]?.chain.isEmpty == false)
    }

    /// The server decides later about the certificate of the new person.
    @Test func theCertificateOfAnotherPersonIsNotUsedMeanwhile() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let before = try bench.vault.leafSHA256(of: "work")
        try bench.control(["pending": 1])
        #expect(try bench.enroll().status == 0)
        #expect(try bench.vault.leafSHA256(of: "work") == before)
        try bench.signIn.provider.change(["subject": "somebody-else"])
        #expect(try bench.enroll().status == 0)
        let vault = try bench.vault
        #expect(vault.identityKeys.isEmpty && vault.enrollments.isEmpty && !bench.hasFile)
        #expect(try bench.certificate?["state"] as? String == "the server has not decided yet")
    }

    /// The new service decides later, and then refuses.
    @Test func aCertificateOfTheServiceBeforeStillBelongsToTheSignIn() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let other = try ESTServer(#"{"auth": "bearer", "pending": 1}"#)
        let service: [String: any Sendable] = [
            "server": other.address(), "anchor": TextFile.text(other.certificate("ca")), "sites": [] as [String],
        ]
        try bench.write(service)
        #expect(try bench.enroll().status == 0)
        try other.set(#"{"auth": "bearer", "fault": "403", "faultFor": "simpleenroll"}"#)
        #expect(try bench.sandbox.countersign("certificate", "refresh", "work").status == 1)
        #expect(try bench.vault.pendingEnrollments.isEmpty && bench.identity != nil)
        // The former service gets no token that its profile does not name.
        let sent = bench.tokensSent
        try bench.control(["certificateIsEnough": false])
        let refresh = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(refresh.status == 1 && refresh.error.contains("does not name"), "\(refresh.said)")
        #expect(bench.tokensSent == sent)
        #expect(try bench.sandbox.countersign("unenroll", "work").status == 0)
        #expect(try bench.vault.identityNames.isEmpty && bench.vault.enrollments.isEmpty && !bench.hasFile)
    }

    @Test func signingOutLeavesTheRequestOfAPerson() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.enrollOther(as: "work", control: ["pending": 1], "--replace", "--no-wait", status: 3)
        let pending = try #require(try bench.vault.pendingEnrollments["work"])
        let again = try bench.enroll()
        #expect(
            again.status == 1 && again.error.contains("is requested that is not that of a sign-in"), "\(again.said)")
        #expect(try bench.sandbox.countersign("unenroll", "work").status == 0)
        let vault = try bench.vault
        #expect(vault.pendingEnrollments["work"] == pending && vault.identityKeys.isEmpty && !bench.hasFile)
    }

    /// The row shows that the certificate is missing.
    @Test func aRefusedRequestIsShown() throws {
        let bench = try Bench(["pending": 1])
        #expect(try bench.enroll().status == 0)
        try bench.control(["fault": "403", "faultFor": "simpleenroll"])
        #expect(try bench.sandbox.countersign("certificate", "refresh", "work").status == 1)
        #expect(try bench.vault.pendingEnrollments.isEmpty)
        #expect(try bench.certificate?["state"] as? String == "refused; sign in again to request one")
    }

    // MARK: Other commands at the same time

    /// It has put another identity in the place of the sign-in's.
    @Test func anIdentityThatIsEnrolledMeanwhileIsNotReplaced() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        var lock = try RenewalLock.acquireIfFree("work", of: Home(path: bench.sandbox.home))
        #expect(lock != nil)
        let command = try bench.start("enroll", "profile.json", "--yes", capture: "waiting")
        let isWaiting = poll { command.errorOutput.contains("waiting for it") ? true : nil }
        #expect(isWaiting == true, "\(command.errorOutput)")
        try bench.change { contents in
            guard var record = contents.enrollments["work"] else { throw HarnessError("there is no enrolment") }
            record.owner = nil
            try contents.setEnrollment(record)
        }
        let before = try bench.vault
        lock = nil
        #expect(command.waitForExit() == 1, "\(command.errorOutput)")
        #expect(command.errorOutput.contains("exists and is not that of a sign-in"), "\(command.errorOutput)")
        let vault = try bench.vault
        #expect(vault.identityKeys == before.identityKeys && vault.signIns == before.signIns)
    }

    /// `certificate refresh` may take as long as the server likes.
    @Test func signingOutWaitsBeforeItChangesAnything() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let before = try bench.vault
        let lock = try #require(try RenewalLock.acquireIfFree("work", of: Home(path: bench.sandbox.home)))
        let command = try bench.start("unenroll", "work", capture: "waiting")
        let isWaiting = poll { command.errorOutput.contains("waiting for it") ? true : nil }
        #expect(isWaiting == true, "\(command.errorOutput)")
        command.send(SIGKILL)
        _ = command.waitForExit()
        withExtendedLifetime(lock) {}
        #expect(try bench.vault == before)
        #expect(!bench.signIn.provider.requests.contains { $0.hasPrefix("POST /revoke") })
    }
}
