// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// Trust at the first enrolment: the anchors for the server (RFC 7030 §3.6), and those for the certificates that it
/// issues (§4.1.3).
@Suite(.waiting) struct EnrollTrustTests {
    @Test func fingerprintIsSufficient() throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll("--fingerprint", try place.fingerprint("ca"))
        #expect(result.status == 0, "\(result.said)")
    }

    @Test func wrongFingerprintFailsBeforeAnythingIsSent() throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll("--fingerprint", try place.fingerprint("other-ca"))
        #expect(result.status == 1)
        #expect(result.error.contains("none of the server's CA certificates has the fingerprint"), "\(result.said)")
        // The server may also log the aborted connection.
        let requests = place.server.log.filter { $0.method != nil }
        #expect(!requests.isEmpty && requests.allSatisfy { $0.authorization == "" && $0.operation == "cacerts" })
        #expect(try place.hasNothing())
    }

    @Test func wrongAnchorFailsBeforeAnythingIsSent() throws {
        let place = try EnrolledSandbox()
        let result = try place.enroll("--anchor", place.server.certificate("other-ca"))
        #expect(result.status == 1)
        #expect(place.server.log.allSatisfy { $0.method == nil })
        #expect(try place.hasNothing())
    }

    @Test func withoutATerminalTheErrorShowsTheFingerprint() throws {
        let place = try EnrolledSandbox()
        let result = try place.sandbox.countersign(
            "certificate", "enroll", "laptop", "--est", place.server.address())
        let fingerprint = try place.fingerprint("ca")
        #expect(result.status == 1)
        #expect(result.error.contains("pass --fingerprint \(fingerprint)\n"), "\(result.said)")
        #expect(try place.hasNothing())
        // This server is unverified, so --yes does not help.
        let agreed = try place.enrollWithoutAnchor("--yes")
        #expect(agreed.status == 1 && agreed.error.contains("pass --fingerprint \(fingerprint)\n"), "\(agreed.said)")
        #expect(try place.hasNothing())
    }

    @Test(arguments: [("y\r", 0), ("n\r", 1), ("\r", 1)] as [(String, Int32)])
    func terminalAsksForConfirmation(answer: String, status: Int32) throws {
        let place = try EnrolledSandbox()
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "certificate", "enroll", "laptop", "--est", place.server.address()],
            environment: try place.sandbox.environment())
        try terminal.waits(for: try place.fingerprint("ca"))
        #expect(place.server.requests("simpleenroll").isEmpty)
        try terminal.when("Trust this CA? [y/N] ", type: answer)
        #expect(terminal.waitForExit() == status, "\(terminal.screen)")
        #expect(try place.hasNothing() == (status != 0))
    }

    // MARK: A server whose certificate is from another CA than those that it issues

    /// The server's certificate is from Other CA; it issues from EST CA.
    private static let split: [String: any Sendable] = ["server": "server-other"]

    private func anchors(_ place: EnrolledSandbox, _ names: String...) throws -> [[UInt8]] {
        try names.map { name in
            try #require(try Certificate.readPEM(TextFile.bytes(place.server.certificate(name))).first).der
        }
    }

    @Test func rootsOfAVerifiedServerHaveToBeConfirmed() throws {
        let place = try EnrolledSandbox(Self.split)
        let result = try place.enroll("--anchor", place.server.certificate("other-ca"))
        #expect(result.status == 1)
        let fingerprint = try place.fingerprint("ca")
        #expect(
            result.error.contains("was not confirmed: CN=EST CA,O=Test, \(fingerprint)\n")
                && result.error.contains("pass --fingerprint \(fingerprint), or --yes\n"), "\(result.said)")
        #expect(place.server.log.allSatisfy { $0.operation == "cacerts" && $0.authorization == "" })
        #expect(try place.hasNothing())
    }

    @Test func yesRecordsTheRootsOfAVerifiedServerAndShowsThem() throws {
        let place = try EnrolledSandbox(Self.split)
        let result = try place.enroll("--anchor", place.server.certificate("other-ca"), "--yes")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.error.contains("  fingerprint  \(try place.fingerprint("ca"))\n"), "\(result.said)")
        #expect(try place.isVerified())
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "ca"))
        #expect(try record.serverAnchors == .own(anchors(place, "other-ca")))
        let shown = try place.sandbox.succeed("certificate", "inspect", "laptop")
        #expect(shown.contains("\nserver trust  \(try place.fingerprint("other-ca"))\n"), "\(shown)")
        #expect(shown.contains("\nissuer trust  \(try place.fingerprint("ca"))\n"), "\(shown)")
    }

    @Test func anchorAndFingerprintChooseOneSetEach() throws {
        let place = try EnrolledSandbox(Self.split)
        let anchor = place.server.certificate("other-ca")
        for wrong in ["other-ca", "new-ca"] {
            let result = try place.enroll("--anchor", anchor, "--fingerprint", try place.fingerprint(wrong))
            #expect(result.status == 1, "\(wrong): \(result.said)")
            #expect(try place.hasNothing())
        }
        let result = try place.enroll("--anchor", anchor, "--fingerprint", try place.fingerprint("ca"))
        #expect(result.status == 0, "\(result.said)")
        #expect(result.error.isEmpty, "\(result.said)")
        #expect(try place.vault.contents.enrollments["laptop"]?.anchors == anchors(place, "ca"))
    }

    /// The anchors for the server do not verify the certificates that it issues, and the reverse.
    @Test func setsAreKeptApart() throws {
        let place = try EnrolledSandbox(Self.split)
        #expect(try place.enroll("--anchor", place.server.certificate("other-ca"), "--yes").status == 0)
        let leaf = try place.leaf()
        try place.control(["server": "server"])
        let server = try place.refresh("laptop")
        #expect(server.status == 1 && server.error.contains("is not trusted"), "\(server.said)")
        try place.control(["server": "server-other", "issuer": "other-ca", "cacerts": ["ca", "other-ca"]])
        let issued = try place.refresh("laptop")
        #expect(issued.status == 1 && issued.error.contains("does not chain to a trust anchor"), "\(issued.said)")
        #expect(issued.error.contains("enrol again with --fingerprint \(try place.fingerprint("other-ca"))"))
        #expect(try place.leaf() == leaf)
        try place.control(Self.split)
        #expect(try place.refresh("laptop").status == 0)
        #expect(try place.leaf() != leaf && place.isVerified())
    }

    @Test func laterRootsNeedRolloverCertificates() throws {
        let place = try EnrolledSandbox(Self.split)
        #expect(try place.enroll("--anchor", place.server.certificate("other-ca"), "--yes").status == 0)
        try place.control([
            "server": "server-other", "issuer": "new-ca", "cacerts": ["new-ca"],
            "clientAuthorities": ["ca", "new-ca"],
        ])
        let refused = try place.refresh("laptop")
        #expect(refused.status == 1, "\(refused.said)")
        #expect(refused.error.contains("is a trust anchor or vouched for by one"), "\(refused.said)")
        try place.control([
            "server": "server-other", "issuer": "new-ca", "cacerts": ["new-ca", "new-by-old"],
            "clientAuthorities": ["ca", "new-ca"],
        ])
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "ca", "new-ca"))
        #expect(try record.serverAnchors == .own(anchors(place, "other-ca")))
    }

    @Test func anchorsOfTheServerRollOverByThemselves() throws {
        let other: [String: any Sendable] = ["issuer": "other-ca", "clientAuthorities": ["other-ca"]]
        let place = try EnrolledSandbox(other.merging(["cacerts": ["other-ca"]]) { $1 })
        #expect(try place.enroll("--yes").status == 0)
        try place.control(other.merging(["cacerts": ["other-ca", "new-ca", "new-by-old"]]) { $1 })
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "other-ca"))
        #expect(try record.serverAnchors == .own(anchors(place, "ca", "new-ca")))
        try place.control(other.merging(["cacerts": ["other-ca"], "server": "server-new"]) { $1 })
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
    }

    @Test(arguments: ["Certs/anchors", "SSL_CERT_FILE"])
    func systemOrCompanyAnchorVerifiesTheServer(place store: String) throws {
        let place = try EnrolledSandbox(Self.split)
        let file = place.server.certificate("other-ca")
        var environment: [String: String] = [:]
        if store == "SSL_CERT_FILE" {
            environment = [store: file]
        } else {
            let folder = "\(place.sandbox.home)/\(store)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try FileManager.default.copyItem(atPath: file, toPath: "\(folder)/company.pem")
        }
        let refused = try place.enrollWithoutAnchor(environment: environment)
        #expect(refused.status == 1 && refused.error.contains(", or --yes\n"), "\(refused.said)")
        let chosen = try place.enrollWithoutAnchor(
            "--fingerprint", try place.fingerprint("ca"), environment: environment)
        #expect(chosen.status == 0, "\(chosen.said)")
        let result = try place.enrollWithoutAnchor("--yes", "--replace", environment: environment)
        #expect(result.status == 0, "\(result.said)")
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "ca") && record.serverAnchors == .implicit)
        let shown = try place.sandbox.succeed("certificate", "inspect", "laptop")
        #expect(shown.contains("\nserver trust  the system's anchors and Certs/anchors\n"), "\(shown)")
        guard store == "Certs/anchors" else { return }
        #expect(try place.refresh("laptop").status == 0)
        try FileManager.default.removeItem(atPath: "\(place.sandbox.home)/\(store)/company.pem")
        let next = try place.refresh("laptop")
        #expect(next.status == 1 && next.error.contains("is not trusted"), "\(next.said)")
    }

    /// The explicit anchors are fewer than the system's.
    @Test func confirmedRootThatVerifiesTheServerIsItsOnlyAnchor() throws {
        let place = try EnrolledSandbox()
        let result = try place.enrollWithoutAnchor(
            "--yes", environment: ["SSL_CERT_FILE": place.server.certificate("ca")])
        #expect(result.status == 0, "\(result.said)")
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "ca") && record.serverAnchors == .same)
    }

    @Test(arguments: [("y\r", 0), ("n\r", 1), ("\r", 1)] as [(String, Int32)])
    func terminalAsksForTheRootsOfAVerifiedServer(answer: String, status: Int32) throws {
        let place = try EnrolledSandbox(Self.split)
        let terminal = try PseudoTerminal(
            [
                try Sandbox.executable, "certificate", "enroll", "laptop", "--est", place.server.address(), "--anchor",
                place.server.certificate("other-ca"),
            ], environment: try place.sandbox.environment())
        try terminal.waits(for: try place.fingerprint("ca"))
        #expect(place.server.requests("simpleenroll").isEmpty)
        try terminal.when("Trust them for issued certificates? [y/N] ", type: answer)
        #expect(terminal.waitForExit() == status, "\(terminal.screen)")
        #expect(try place.hasNothing() == (status != 0))
    }

    @Test func extraRootsOfTheServerAreAddedWithYesOnly() throws {
        let place = try EnrolledSandbox(["issuer": "other-ca", "cacerts": ["ca", "other-ca"]])
        let refused = try place.enroll()
        #expect(refused.status == 1 && refused.error.contains("does not chain to a trust anchor"), "\(refused.said)")
        try place.control([
            "issuer": "other-ca", "cacerts": ["ca", "other-ca"], "clientAuthorities": ["other-ca"],
        ])
        let result = try place.enroll("--yes")
        #expect(result.status == 0, "\(result.said)")
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(try record.anchors == anchors(place, "ca", "other-ca"))
        #expect(try record.serverAnchors == .own(anchors(place, "ca")))
    }

    @Test func confirmedAnchorsOfAPendingEnrolmentAreStored() throws {
        let place = try EnrolledSandbox(["server": "server-other", "pending": 1, "retryAfter": "1"])
        let result = try place.enroll("--anchor", place.server.certificate("other-ca"), "--yes", "--no-wait")
        #expect(result.status != 0 && result.error.contains("has not yet decided"), "\(result.said)")
        let next = try place.refresh("laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.vault.contents.enrollments["laptop"]?.serverAnchors == .own(anchors(place, "other-ca")))
    }
}

extension EnrolledSandbox {
    func fingerprint(_ authority: String) throws -> String {
        try #require(try Certificate.readPEM(TextFile.bytes(server.certificate(authority))).first).fingerprintText
    }
}
