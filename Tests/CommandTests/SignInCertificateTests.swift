// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// `enroll` with a profile that names an EST service. The EST server is also the site that asks for the certificate.
@Suite(.waiting) struct SignInCertificateTests {
    private typealias Bench = SignInCertificateBench

    // MARK: Success

    @Test func aSignInBringsTheCertificateThatItsSitesAskFor() throws {
        let bench = try Bench()
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output.contains("certificate of identity \"work\": CN=jdoe@acme.example, valid until 20"))
        // The token answers one challenge each, and is never sent without one.
        #expect(bench.est.requests("simpleenroll").map(\.authorization) == ["", "Bearer"])
        #expect(bench.est.log.allSatisfy { $0.operation != "cacerts" || $0.authorization == "" })
        let shown = try #require(try bench.certificate)
        #expect(shown["server"] as? String == bench.est.address())
        #expect(shown["state"] as? String == "valid until \(shown["notAfter"] as? String ?? "")")
        let identity = try #require(try bench.identity)
        #expect(shown["notAfter"] as? String == WallClock.rfc3339(identity.leaf.notAfter))
        let sites = try bench.sites
        #expect(sites.contains("https://api.corp.example") && sites.contains(bench.est.address()), "\(sites)")
        #expect(!result.said.contains("canary"))

        // The profile's anchor does not verify the site's own certificate.
        let anchors = "\(bench.sandbox.home)/Certs/anchors"
        try FileManager.default.createDirectory(atPath: anchors, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: bench.est.certificate("ca"), toPath: "\(anchors)/est.pem")
        let proxy = try bench.sandbox.serve()
        let port = try proxy.line(after: "countersign: listening on 127.0.0.1:")
        #expect(try bench.visit(proxy, port: port) == "CN=jdoe@acme.example")
    }

    @Test func theQuestionShowsTheServiceItsAnchorAndWhatItGets() throws {
        let bench = try Bench()
        try bench.sandbox.succeed("sites", "add", bench.est.address(), "answer=basic", "credential=est")
        try bench.write(["sites": ["https://pay.corp.example"]])
        let said = try bench.enroll().error
        let anchor = try #require(try Certificate.readPEM(TextFile.bytes(bench.est.certificate("ca"))).first)
        #expect(
            said.contains("identity \"work\" from the EST service \(bench.est.address()), with a new key"), "\(said)")
        #expect(said.contains(anchor.fingerprintText) && said.contains("the access token, on a Bearer challenge"))
        #expect(said.contains("credential \"est\", on a Basic or Digest challenge: its site is listed"))
        #expect(said.contains("https://pay.corp.example, which gets the certificate when it asks for one"))
    }

    @Test func whatIsEnrolledForTheServiceAnswersIfTheTokenDoesNot() throws {
        let bench = try Bench(["auth": "basic"])
        try bench.write(["sites": [] as [String]])
        #expect(try bench.enroll().error.contains("answers Bearer only"))
        try bench.sandbox.succeed(
            "credential", "set", "est", "--user", ESTServer.user, "--password-stdin", input: ESTServer.password + "\n")
        try bench.sandbox.succeed("sites", "add", bench.est.address(), "answer=basic", "credential=est")
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(bench.est.requests("simpleenroll").last?.user == ESTServer.user)
        #expect(try bench.identity != nil)
    }

    @Test func aRunningServerObtainsTheCertificate() throws {
        let bench = try Bench()
        try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
        let proxy = try bench.sandbox.serve()
        let port = try proxy.line(after: "countersign: listening on 127.0.0.1:")
        let anchors = "\(bench.sandbox.home)/Certs/anchors"
        try FileManager.default.createDirectory(atPath: anchors, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: bench.est.certificate("ca"), toPath: "\(anchors)/est.pem")
        let result = try bench.enroll()
        #expect(result.status == 0 && result.output.contains("certificate of identity \"work\""), "\(result.said)")
        let client = poll { try? bench.visit(proxy, port: port) }
        #expect(client == "CN=jdoe@acme.example", "\(proxy.errorOutput)")
    }

    @Test func theCertificateIsRenewed() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let before = try #require(try bench.identity).leaf
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 0, "\(result.said)")
        #expect(try bench.identity?.leaf != before)
        #expect(bench.est.requests("simplereenroll").last?.client == "CN=jdoe@acme.example")
    }

    /// The server no longer accepts the certificate.
    @Test func theTokenRenewsACertificateThatIsRefused() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.control(["certificateIsEnough": false])
        let result = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(result.status == 0, "\(result.said)")
        #expect(bench.est.requests("simpleenroll").map(\.authorization) == ["", "Bearer", "", "Bearer"])
    }

    @Test func aServerMayDecideLater() throws {
        let bench = try Bench(["pending": 1])
        let result = try bench.enroll()
        #expect(
            result.status == 0 && result.error.contains("has not yet decided about the certificate"), "\(result.said)")
        #expect(try bench.certificate?["state"] as? String == "the server has not decided yet")
        let refreshed = try bench.sandbox.countersign("certificate", "refresh", "work")
        #expect(refreshed.status == 0, "\(refreshed.said)")
        #expect(try bench.identity != nil)
        #expect(bench.est.requests("simpleenroll").last?.authorization == "Bearer")
    }

    // MARK: Signing out

    @Test func signingOutRemovesTheIdentityAndNoOther() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.enrollOther()
        #expect(bench.hasFile)
        let result = try bench.sandbox.countersign("unenroll", "work")
        #expect(result.status == 0, "\(result.said)")
        let vault = try bench.vault
        #expect(vault.identityNames == ["laptop"] && vault.enrollments["work"] == nil && !bench.hasFile)
        #expect(try !bench.sites.contains(bench.est.address()))
        #expect(try bench.sandbox.succeed("certificate", "list", "--no-header").hasPrefix("laptop"))
    }

    @Test func signingOutLeavesAnIdentityThatHasTakenThePlace() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.enrollOther(as: "work", "--replace")
        #expect(try bench.certificate == nil)
        #expect(try bench.sandbox.countersign("unenroll", "work").status == 0)
        #expect(try bench.vault.identityNames == ["work"] && bench.hasFile)
    }

    @Test func moreScopesNeedNoNewCertificate() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let before = try #require(try bench.identity)
        let signIn = try #require(try bench.vault.signIns["work"])
        let again = try bench.signIn.run(["enroll", "work", "--scope", "more", "--yes"])
        #expect(again.status == 0, "\(again.said)")
        #expect(try bench.identity?.leaf == before.leaf && bench.est.requests("simpleenroll").count == 2)
        let vault = try bench.vault
        let new = try #require(vault.signIns["work"])
        #expect(new.identifier != signIn.identifier && vault.ownsCertificate(new))
        // A profile that wants another kind of key gets another certificate.
        try bench.write(["key": "rsa-2048"])
        let other = try bench.signIn.run(["enroll", "work", "--scope", "more", "--yes"])
        #expect(other.status == 0, "\(other.said)")
        #expect(try bench.identity?.leaf != before.leaf)
    }

    @Test func aNewProfileWithoutTheServiceTakesTheCertificateAway() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        try bench.write(nil)
        #expect(try bench.enroll().status == 0)
        #expect(try bench.vault.identityNames.isEmpty && !bench.hasFile && bench.certificate == nil)
    }

    // MARK: Failure

    @Test(arguments: ["500", "403", "other-key", "other-ca", "401-forever", "html", "cut-inside-body"])
    func aFailureStoresNothing(fault: String) throws {
        let bench = try Bench(["fault": fault, "faultFor": "simpleenroll"])
        let result = try bench.enroll()
        #expect(result.status == 1, "\(result.said)")
        #expect(
            result.error.contains("\(bench.est.address()) has issued no certificate, so the sign-in is not stored")
                && result.error.contains("the new tokens are not stored; the provider has revoked them"),
            "\(result.said)")
        let vault = try bench.vault
        #expect(vault.signIns.isEmpty && vault.tokens.isEmpty && vault.identityNames.isEmpty)
        #expect(vault.pendingEnrollments.isEmpty && vault.enrollments.isEmpty && !bench.hasFile)
        #expect(try bench.sites.isEmpty && bench.signIn.status.isEmpty)
        #expect(bench.signIn.provider.requests.contains("POST /revoke access_token 200"))
    }

    @Test func aFailureLeavesTheSignInBeforeAsItWas() throws {
        let bench = try Bench()
        #expect(try bench.enroll().status == 0)
        let files = ["Certs/identities/work.pem", "AllowedSites/signed-in.work.sites"].map {
            "\(bench.sandbox.home)/\($0)"
        }
        let before = (vault: try bench.vault, sites: try bench.sites, files: files.map(TextFile.bytes))
        #expect(before.files.allSatisfy { !$0.isEmpty })
        let faults: [[String: any Sendable]] = [
            ["fault": "500", "faultFor": "simpleenroll"], ["fault": "other-ca", "faultFor": "simpleenroll"],
            // After the issue, in the test handshake.
            ["tls": "1.2", "alert": 46],
        ]
        for fault in faults {
            try bench.control(fault)
            #expect(try bench.enroll().status == 1)
            let vault = try bench.vault
            #expect(vault.signIns == before.vault.signIns && vault.tokens == before.vault.tokens)
            #expect(vault.enrollments == before.vault.enrollments && vault.identityKeys == before.vault.identityKeys)
            #expect(vault.pendingEnrollments.isEmpty)
            #expect(files.map(TextFile.bytes) == before.files)
        }
        #expect(try bench.sites == before.sites)
    }

    @Test func anUntrustedServiceGetsNothing() throws {
        let bench = try Bench(["server": "server-other"])
        // Not even if everything else would verify it.
        let anchors = "\(bench.sandbox.home)/Certs/anchors"
        try FileManager.default.createDirectory(atPath: anchors, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: bench.est.certificate("other-ca"), toPath: "\(anchors)/other.pem")
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("is not trusted"), "\(result.said)")
        #expect(bench.est.log.allSatisfy { $0.authorization == nil })
        #expect(try bench.vault.signIns.isEmpty)
    }

    /// Issued, and then refused in the test handshake.
    @Test func aCertificateThatDoesNotWorkIsNotStored() throws {
        let bench = try Bench(["tls": "1.2", "alert": 46])
        let result = try bench.enroll()
        #expect(
            result.status == 1 && result.error.contains("does not accept the certificate that it issued"),
            "\(result.said)")
        let vault = try bench.vault
        #expect(vault.signIns.isEmpty && vault.pendingEnrollments.isEmpty && vault.identityNames.isEmpty)
        #expect(!bench.hasFile)
    }

    /// While the EST server keeps the command waiting, or the running server that asks it.
    @Test(arguments: [false, true])
    func ctrlCStoresNothing(atServer: Bool) throws {
        let bench = try Bench(["fault": "slow", "faultFor": "simpleenroll"])
        let server: ChildProcess?
        if atServer {
            try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
            server = try bench.sandbox.serve()
            _ = try server?.line(after: "countersign: listening on ")
        } else {
            server = nil
        }
        defer { server?.stop() }
        let command = try ChildProcess(
            try Sandbox.executable, ["enroll", "profile.json", "--yes"],
            environment: try bench.sandbox.environment(adding: bench.signIn.environment),
            folder: bench.sandbox.folder.path, capture: bench.sandbox.folder.file("interrupted"))
        let isWaiting = poll { bench.est.requests("simpleenroll").isEmpty ? nil : true }
        #expect(isWaiting == true, "\(command.errorOutput)")
        command.send(SIGINT)
        #expect(command.waitForExit() == 130, "\(command.errorOutput)")
        let vault = try bench.vault
        #expect(vault.signIns.isEmpty && vault.pendingEnrollments.isEmpty && vault.identityNames.isEmpty)
        #expect(bench.signIn.provider.requests.contains("POST /revoke access_token 200"))
    }

    /// The remains of a killed command do not prevent the next sign-in.
    @Test func aKilledCommandIsRepeated() throws {
        let bench = try Bench(["fault": "slow", "faultFor": "simpleenroll"])
        try bench.kill()
        try bench.control([:])
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(try bench.identity != nil)
    }

    @Test func theIdentityOfSomebodyElseIsNotReplaced() throws {
        let bench = try Bench()
        try bench.enrollOther(as: "work")
        let before = try bench.vault
        let result = try bench.enroll()
        #expect(
            result.status == 1
                && result.error.contains("the identity \"work\" exists and is not that of a sign-in"), "\(result.said)")
        // Before the person sees a page.
        #expect(bench.signIn.provider.requests.isEmpty)
        #expect(try bench.vault.identityKeys == before.identityKeys)
    }
}
