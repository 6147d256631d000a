// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `certificate enroll` with a test server that issues certificates with openssl.
@Suite(.waiting) struct EnrollTests {
    @Test func enrolledCertificateVerifiesWithOpenSSL() throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output.hasPrefix("identity \"laptop\" enrolled: CN=jdoe, valid until 20"))
        #expect(result.error.isEmpty)
        #expect(try place.isVerified())
        #expect(try place.identity() != nil)
        #expect(!TextFile.text(place.chainPath()).contains("PRIVATE"))
        #expect(try place.vault.contents.pendingEnrollments.isEmpty)
        // The certificate was tested on a separate connection before use.
        #expect(place.server.log.last?.client == "CN=jdoe")
    }

    @Test(arguments: [
        ("ec-p256", "EC P-256"), ("ec-p384", "EC P-384"), ("rsa-2048", "RSA 2048"), ("rsa-3072", "RSA 3072"),
    ])
    func keyHasTheRequestedKind(kind: String, shown: String) throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll("--key", kind)
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf().keyDescription == shown)
    }

    @Test func certificateHasTheRequestedSubjectAndNames() throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll(
            "--subject", "CN=Laptop of jdoe,O=ACME", "--san", "dns:laptop.corp.example", "--san",
            "email:jdoe@acme.example")
        #expect(result.status == 0, "\(result.said)")
        let text = try place.openssl(["x509", "-in", place.chainPath(), "-noout", "-subject", "-ext", "subjectAltName"])
        #expect(text.output.contains("O = ACME, CN = Laptop of jdoe"))
        #expect(text.output.contains("DNS:laptop.corp.example, email:jdoe@acme.example"))
    }

    /// The keys on P-384 that this server asks for cannot authenticate to it.
    @Test func serverLikeLibestEnrolsAndRenews() throws {
        let place = try EnrolledSandbox(ESTServer.libest)
        let result = try place.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(
            result.error.contains("wants attributes in the request that cannot be supplied: 1.3.6.1.1.1.1.22\n"),
            "\(result.said)")
        #expect(result.error.contains("the new certificate is in use but was not tested"), "\(result.said)")
        let first = try place.leaf()
        #expect(try first.keyDescription == "EC P-384" && place.isVerified())
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.leaf() != first && place.isVerified())
        #expect(place.server.requests("simpleenroll").count { $0.linked == true && $0.user == ESTServer.user } == 2)
        // A key that the server can use authenticates the renewal itself.
        #expect(try place.enroll("--replace", "--key", "ec-p256").status == 0)
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simplereenroll").map(\.client) == ["CN=jdoe"])
    }

    @Test(arguments: ["html", "not-base64", "junk-pkcs7", "wrong-type"])
    func unreadableAttributesAreAWarning(fault: String) throws {
        let place = try EnrolledSandbox(["fault": fault, "faultFor": "csrattrs", "pending": 2, "retryAfter": "1"])
        let result = try place.enroll()
        #expect(result.status == 0, "\(result.said)")
        let warnings = result.error.split(separator: "\n").filter { $0.contains("warning: the CSR attributes of ") }
        #expect(warnings.count == 1 && warnings[0].contains("are unreadable"), "\(result.said)")
        #expect(try place.isVerified())
    }

    @Test func identityCanEnrolAnother() throws {
        let place = try EnrolledSandbox()
        #expect(try place.enroll(name: "first").status == 0)
        try place.sandbox.succeed("credential", "remove", "enrollment")
        try place.control(["clientCertificate": "required"])
        let result = try place.enroll("--identity", "first", name: "second")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.isVerified("second"))
    }

    // MARK: Failures

    @Test func wrongPasswordLeavesNothingBehind() throws {
        let place = try EnrolledSandbox(credential: "canary-wrong")
        let result = try place.enroll()
        #expect(result.status == 1)
        #expect(result.error.contains("refused the credential \"enrollment\""), "\(result.said)")
        #expect(!result.said.contains("canary"))
        #expect(place.server.log.count { $0.authorization == "Basic" } == 1)
        #expect(try place.hasNothing())
    }

    @Test func existingNameRequiresReplace() throws {
        let place = try EnrolledSandbox()
        #expect(try place.enroll().status == 0)
        let first = try place.leaf()
        let refused = try place.enroll()
        #expect(refused.status == 1 && refused.error.contains("there is an identity \"laptop\" already"))
        #expect(try place.leaf() == first)
        let replaced = try place.enroll("--replace", "--subject", "CN=other")
        #expect(replaced.status == 0, "\(replaced.said)")
        #expect(try place.leaf().subject == "CN=other")
        #expect(try place.vault.contents.enrollments["laptop"]?.subject == "CN=other")
    }

    @Test func failedReplacementChangesNothing() throws {
        let place = try EnrolledSandbox()
        #expect(try place.enroll().status == 0)
        let (leaf, record) = (try place.leaf(), try place.vault.contents.enrollments["laptop"])
        try place.control(["fault": "500", "faultFor": "simpleenroll"])
        #expect(try place.enroll("--replace", "--subject", "CN=other").status == 1)
        #expect(try place.leaf() == leaf)
        #expect(try place.vault.contents.enrollments["laptop"] == record)
        #expect(try place.vault.contents.pendingEnrollments.isEmpty)
        try place.control()
        #expect(try place.refresh("laptop").status == 0)
    }

    /// A fault of the server and the expected error text.
    static let faults: [(fault: String, said: String)] = [
        ("html", "<html"), ("empty-pkcs7", "no certificate"), ("other-key", "a different key"),
        ("other-ca", "does not chain to a trust anchor"), ("not-base64", "base64"), ("junk-pkcs7", "PKCS#7"),
        ("500", "500"), ("403", "403"), ("401-forever", "refused the credential"), ("not-http", "not HTTP/1.1"),
        ("cut-before-status", "cut"), ("cut-inside-status", "cut"), ("cut-inside-head", "cut"),
        ("cut-inside-body", "cut"),
        ("reset", "cut"), ("302", "redirected"), ("huge", "more than"),
    ]

    @Test(arguments: faults)
    func serverFaultLeavesNothingAndTheNextRunSucceeds(fault: String, said: String) throws {
        let place = try EnrolledSandbox()
        try place.control(["fault": fault, "faultFor": "simpleenroll"])
        let result = try place.enroll()
        #expect(result.status == 1)
        #expect(result.error.hasPrefix("countersign: error: ") && result.error.contains(said), "\(result.said)")
        #expect(result.output.isEmpty)
        #expect(try place.hasNothing())
        try place.control()
        let next = try place.enroll()
        #expect(next.status == 0, "\(next.said)")
    }

    // MARK: Deferred decisions

    @Test func enrollWaitsForADeferredDecision() throws {
        let place = try EnrolledSandbox(["pending": 2, "retryAfter": "4"])
        let result = try place.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(result.error.contains("has deferred its decision; next poll at 20"))
        #expect(place.server.requests("simpleenroll").count { $0.authorization == "Basic" } >= 3)
    }

    @Test func anotherProcessContinuesAPendingEnrolmentWithTheSameKey() throws {
        let place = try EnrolledSandbox(["pending": 1, "retryAfter": "1"])
        let result = try place.enroll("--no-wait")
        #expect(result.status == 3)
        #expect(result.error.contains("has not yet decided about identity \"laptop\""), "\(result.said)")
        let pending = try #require(try place.vault.contents.pendingEnrollments["laptop"])
        #expect(pending.state == .requested && !pending.request.isEmpty && pending.attempts == 1)
        #expect(
            try place.needsRefresh("laptop").output.contains(
                "laptop: yes, its first certificate has not been issued yet"))
        let listed = try place.sandbox.countersign("certificate", "list", "--no-header")
        let row = "laptop  CN=jdoe  \(place.server.address())  pending since 20"
        #expect(listed.output.hasPrefix(row) && listed.output.contains("  next request 20"), "\(listed.said)")
        #expect(listed.error.isEmpty)
        let json = try place.sandbox.sh(
            "countersign certificate list --json | jq -c '.[] | [.name, .pending, .server, .issued, .daysLeft]'")
        #expect(json.output == "[\"laptop\",true,\"\(place.server.address())\",false,null]\n", "\(json.said)")

        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        let identity = try #require(try place.identity())
        #expect(try identity.key.pkcs8 == pending.privateKey)
        #expect(try !place.sandbox.countersign("certificate", "list").output.contains("pending"))
    }

    @Test func pendingRenewalIsListedBesideItsIdentity() throws {
        let place = try EnrolledSandbox(["days": 1])
        let result = try place.enroll()
        #expect(result.output.contains("valid for 23 hours\n") || result.output.contains("valid for 24 hours\n"))
        try place.control(["pending": 2, "retryAfter": "86400"])
        #expect(try place.refresh("laptop", "--no-wait").status == 3)
        let lines = try place.sandbox.countersign("certificate", "list", "--no-header").output.split(separator: "\n")
        #expect(lines.count == 2, "\(lines)")
        #expect(["  23 hours left", "  24 hours left"].contains { lines[0].contains($0) }, "\(lines)")
        #expect(lines.last?.contains("pending since 20") == true, "\(lines)")
    }

    /// A failure of one identity is the status of the whole refresh.
    @Test func refreshOfAllIsPendingUnlessOneFails() throws {
        let place = try EnrolledSandbox(["pending": 2, "retryAfter": "86400"])
        #expect(try place.enroll("--no-wait").status == 3)
        #expect(try place.refresh("--no-wait").status == 3)
        try place.control(["fault": "500"])
        #expect(try place.enroll("--no-wait", name: "other").status == 1)
        try place.control(["pending": 2, "retryAfter": "1"])
        #expect(try place.enroll("--no-wait", name: "other").status == 3)
        try place.vault.update { contents in
            var pending = try #require(contents.pendingEnrollments["other"])
            pending.retryAt = 0
            try contents.setPendingEnrollment(pending)
        }
        try place.control(["fault": "500"])
        let result = try place.refresh("--no-wait")
        #expect(result.status == 1, "\(result.said)")
        #expect(result.error.contains("identity \"laptop\"") && result.error.contains("500"), "\(result.said)")
    }

    @Test func pendingReplacementRepeatsTheOriginalRequest() throws {
        let place = try EnrolledSandbox()
        try #require(try place.enroll().status == 0)
        let before = try place.leaf()
        try place.control(["pending": 1, "retryAfter": "1"])
        #expect(try place.enroll("--replace", "--subject", "CN=other", "--no-wait").status == 3)
        #expect(try place.identity()?.leaf == before)
        // A temporary outage of the server does not lose the request.
        let pending = try #require(try place.vault.contents.pendingEnrollments["laptop"])
        try place.control(["fault": "reset"])
        #expect(try place.enroll("--replace", "--subject", "CN=other").status == 1)
        let kept = try #require(try place.vault.contents.pendingEnrollments["laptop"])
        #expect(kept.privateKey == pending.privateKey && kept.request == pending.request)
        try place.control()
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf().subject == "CN=other")
        #expect(try place.identity()?.key.pkcs8 == pending.privateKey)
        #expect(place.server.requests("simplereenroll").isEmpty)
    }

    @Test func terminalShowsACountdown() throws {
        // Several seconds: a busy machine may skip some of them.
        let place = try EnrolledSandbox(["pending": 1, "retryAfter": "5"])
        let terminal = try PseudoTerminal(
            [
                try Sandbox.executable, "certificate", "enroll", "laptop", "--est", place.server.address(), "--anchor",
                place.server.certificate("ca"),
            ], environment: try place.sandbox.environment())
        try terminal.waits(for: "waiting for \(place.server.address()): ")
        try terminal.waits(for: "identity \"laptop\" enrolled")
        #expect(terminal.waitForExit() == 0)
    }
}
