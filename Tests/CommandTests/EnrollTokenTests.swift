// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// Enrolment and renewal of keys that stay in a token.
@Suite(.waiting) struct EnrollTokenTests {
    private let place: EnrolledSandbox
    private let token: SoftToken

    init() throws {
        place = try EnrolledSandbox()
        token = try SoftToken()
        try token.generate("vpn", id: "01", kind: "EC:prime256v1")
    }

    private func certificate(_ arguments: String..., pin: String? = nil) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid",
            ["--wait", try Sandbox.executable, "certificate"] + arguments + (pin == nil ? [] : ["--password-stdin"]),
            environment: try place.sandbox.environment(adding: token.environment),
            folder: place.sandbox.folder.path, input: pin.map { $0 + "\n" } ?? "", in: place.sandbox.folder)
    }

    private func enroll(
        _ flags: String..., key: String = SoftToken.uri("vpn"), pin: String = SoftToken.pin
    ) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid",
            [
                "--wait", try Sandbox.executable, "certificate", "enroll", "laptop", "--est", place.server.address(),
                "--anchor", place.server.certificate("ca"), "--key", key, "--password-stdin",
            ] + flags, environment: try place.sandbox.environment(adding: token.environment),
            folder: place.sandbox.folder.path, input: pin + "\n", in: place.sandbox.folder)
    }

    @Test(arguments: ["EC:prime256v1", "EC:secp384r1", "rsa:2048"], ["1.2", "1.3"])
    func keyInATokenIsEnrolledAndRenewed(kind: String, tls: String) throws {
        try token.generate("other", id: "02", kind: kind)
        try place.control(["tls": tls])
        let result = try enroll(key: SoftToken.uri("other"))
        #expect(result.status == 0, "\(result.said)")
        #expect(result.error.isEmpty, "\(result.said)")
        #expect(try place.isVerified())
        let first = try place.leaf()
        let contents = try place.vault.contents
        #expect(contents.tokenKeys["laptop"]?.leafSHA256 == first.sha256Fingerprint)
        #expect(contents.identityKeys["laptop"] == nil && contents.pendingEnrollments.isEmpty)
        // The key authenticated the test handshake, and it authenticates its own renewal.
        #expect(place.server.log.last?.client == "CN=jdoe")
        let next = try certificate("refresh", "laptop")
        #expect(next.status == 0, "\(next.said)")
        let second = try place.leaf()
        #expect(second != first && second.publicKeyDER == first.publicKeyDER)
        #expect(place.server.requests("simplereenroll").map(\.client) == ["CN=jdoe"])
        let record = try #require(try place.vault.contents.enrollments["laptop"])
        #expect(record.previous?.chain.first == first.der)
        let shown = try certificate("inspect", "laptop")
        #expect(shown.output.contains("in the token pkcs11:token=work;object=other"), "\(shown.said)")
    }

    @Test func linkedRequestsAreSignedInTheToken() throws {
        try place.control(ESTServer.libest)
        let result = try enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf().keyDescription == "EC P-256")
        #expect(try certificate("refresh", "laptop").status == 0)
        #expect(place.server.requests("simplereenroll").allSatisfy { $0.linked == true })
    }

    @Test func pendingRequestForAKeyInATokenContinues() throws {
        try place.control(["pending": 1, "retryAfter": "1"])
        let result = try enroll("--no-wait")
        #expect(result.status == 3, "\(result.said)")
        let next = try certificate("refresh", "laptop")
        #expect(next.status == 0, "\(next.said)")
        #expect(try place.vault.contents.tokenKeys["laptop"] != nil && place.isVerified())
    }

    @Test func importedKeyInATokenIsEnrolledWithReplace() throws {
        try token.take("client-a", id: "a1")
        let uri = SoftToken.uri("client-a")
        let imported = try certificate("import", uri, "--name", "laptop", pin: SoftToken.pin)
        try #require(imported.status == 0, "\(imported.said)")
        let refused = try enroll(key: uri)
        #expect(refused.status == 1 && refused.error.contains("there is an identity"), "\(refused.said)")
        let result = try enroll("--replace", key: uri)
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf().issuer == "CN=EST CA,O=Test" && place.isVerified())
        // The imported certificate is for the same key, so it can be restored.
        #expect(try place.vault.contents.enrollments["laptop"]?.previous != nil)
        #expect(try certificate("refresh", "laptop").status == 0)
    }

    @Test func wrongPINOrKeyFailsBeforeAnythingIsSent() throws {
        let pin = try enroll(pin: "canary-wrong")
        #expect(pin.status == 1 && pin.error.contains("the token refuses the PIN"), "\(pin.said)")
        let key = try enroll(key: SoftToken.uri("nobody"))
        #expect(key.status == 1 && key.error.contains("no private key"), "\(key.said)")
        #expect(key.error.contains("--keypairgen"), "\(key.said)")
        #expect(!pin.said.contains("canary") && place.server.log.isEmpty)
        #expect(try place.hasNothing() && place.vault.contents.tokenKeys.isEmpty)
    }

    /// A token locks itself after a few wrong PINs.
    @Test func refusedPINIsTriedOnceByRefreshes() throws {
        try #require(try enroll().status == 0)
        let key = try #require(try place.vault.contents.tokenKeys["laptop"])
        try place.vault.update { contents in
            try contents.setTokenKey(
                TokenKey(
                    name: "laptop", uri: key.uri, pin: Secret(utf8: "canary-wrong"), leafSHA256: key.leafSHA256))
        }
        let first = try certificate("refresh", "laptop")
        #expect(first.status == 1 && first.error.contains("the token refuse"), "\(first.said)")
        #expect(try place.vault.contents.tokenKeys["laptop"]?.isPINRefused == true)
        let second = try certificate("refresh", "laptop")
        #expect(second.status == 1 && second.error.contains("refused the PIN before"), "\(second.said)")
        let again = try enroll("--replace")
        #expect(again.status == 0, "\(again.said)")
        #expect(try place.vault.contents.tokenKeys["laptop"]?.isPINRefused == false)
        #expect(try certificate("refresh", "laptop").status == 0)
    }

    @Test func failedReplacementKeepsTheTokensCertificate() throws {
        try #require(try enroll().status == 0)
        let (leaf, contents) = (try place.leaf(), try place.vault.contents)
        try place.control(["fault": "500", "faultFor": "simpleenroll"])
        #expect(try enroll("--replace").status == 1)
        let now = try place.vault.contents
        #expect(now.tokenKeys == contents.tokenKeys && now.enrollments == contents.enrollments)
        #expect(try now.pendingEnrollments.isEmpty && place.leaf() == leaf)
    }

    @Test func serveRenewsAKeyInAToken() throws {
        try #require(try enroll().status == 0)
        let first = try place.leaf()
        // Due at once: the certificate has expired for the renewal's schedule.
        try place.control(["notBefore": "20200101000000Z", "notAfter": Self.tomorrow])
        try #require(try certificate("refresh", "laptop").status == 0)
        let old = try place.leaf()
        try place.control()
        let serve = try place.sandbox.serve(environment: token.environment)
        #expect(poll { (try? place.leaf()) != old ? true : nil } == true, "\(serve.errorOutput)")
        #expect(try place.leaf().publicKeyDER == first.publicKeyDER && place.isVerified())
        serve.send(SIGTERM)
        #expect(serve.waitForExit() == 0)
    }

    private static var tomorrow: String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        return format.string(from: Date(timeIntervalSinceNow: 86_400))
    }
}
