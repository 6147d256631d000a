// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// `countersign profile` with profiles that plistlib and openssl have made.
@Suite(.waiting) struct ProfileTests {
    private let bench: ProfileSandbox

    init() throws {
        bench = try ProfileSandbox()
    }

    private var whole: [[String: any Sendable]] {
        [
            bench.root, bench.intermediate, bench.identity,
            MadeProfile.payload("com.apple.webClip.managed", "example.clip", ["PayloadDisplayName": "Intranet"]),
        ]
    }

    private func anchors() throws -> [String] {
        try bench.files().keys.filter { $0.hasPrefix("Certs/anchors/") }.sorted()
    }

    private func fingerprint(_ name: String) throws -> String {
        try #require(try Certificate.readPEM(TextFile.bytes(bench.folder.file("\(name).pem"))).first).fingerprintText
    }

    @Test func aSignedProfileIsInstalledAndRemovedWithoutATrace() throws {
        let before = try bench.state()
        try MadeProfile.certificate("signer", "/CN=MDM", extensions: MadeProfile.client, in: bench.folder)
        let plain = try bench.write(whole)
        let signed = try MadeProfile.sign(
            plain, as: "signed", by: [(bench.folder.file("signer.pem"), bench.folder.file("signer.key"))],
            in: bench.folder)
        let done = try bench.install(signed)
        try #require(done.status == 0, "\(done.said)")
        #expect(done.output == "profile \"example.corp\" installed\n")
        #expect(done.error.contains("signed by CN=MDM, who is not trusted here: self-signed certificate"))
        #expect(done.error.contains("Intranet (com.apple.webClip.managed), which has no effect here"))
        for name in ["root", "intermediate"] {
            let text = try fingerprint(name)
            #expect(done.error.contains(text), "\(done.error)")
            #expect(try bench.succeed("trust", "anchor", "list").contains(text))
        }
        #expect(try bench.succeed("certificate", "list", "--no-header").hasPrefix("laptop "))
        let record = try #require(try bench.vault.profiles["example.corp"])
        #expect(record.journal == nil && record.owner == nil && record.organization == "Example Corporation")
        #expect(record.signer?.subject == "CN=MDM" && record.signer?.isTrusted == false)
        #expect(record.anchors.count == 2 && record.identities.map(\.name) == ["laptop"])
        let shown = try bench.succeed("profile", "show", "example.corp")
        #expect(shown.contains("signed by CN=MDM, who was not trusted here"), "\(shown)")
        #expect(try bench.succeed("profile", "list", "--no-header").hasPrefix("example.corp "))
        let removed = try bench.succeed("profile", "remove", "example.corp")
        #expect(removed.contains("identity \"laptop\""), "\(removed)")
        #expect(try bench.state() == before)
    }

    @Test func aSignerWithAnAnchorIsVerified() throws {
        try bench.succeed("trust", "anchor", "add", bench.folder.file("root.pem"))
        let plain = try bench.write([bench.identity])
        let signed = try MadeProfile.sign(
            plain, as: "signed", by: [(bench.folder.file("laptop.pem"), bench.folder.file("laptop.key"))],
            with: ["-certfile", bench.folder.file("intermediate.pem")], in: bench.folder)
        let shown = try bench.succeed("profile", "show", signed)
        #expect(shown.contains("signed by CN=laptop,O=Example, verified"), "\(shown)")
        #expect(try bench.succeed("profile", "show", plain).contains("not signed"))
        #expect(try bench.vault.profiles.isEmpty)
    }

    @Test func nothingIsInstalledWithoutConsent() throws {
        let before = try bench.state()
        let file = try bench.write(whole)
        let done = try bench.sandbox.countersign("profile", "install", file)
        #expect(done.status == 1 && done.error.contains("pass --yes"), "\(done.said)")
        for answer in ["\r", "n\r"] {
            let terminal = try PseudoTerminal(
                [try Sandbox.executable, "profile", "install", file], environment: try bench.sandbox.environment())
            try terminal.when("Install the profile?", type: answer)
            #expect(terminal.waitForExit() == 1, "\(terminal.screen)")
        }
        #expect(try bench.state() == before)
    }

    /// Existing items are not replaced, and stay.
    @Test func whatWasThereBeforeStays() throws {
        try bench.succeed("trust", "anchor", "add", bench.folder.file("root.pem"), "--name", "own")
        try bench.sandbox.succeed(
            "certificate", "import", bench.folder.file("laptop.p12"), "--name", "mine", "--password-stdin",
            input: "secret\n")
        let before = try bench.state()
        let done = try bench.install(try bench.write(whole))
        try #require(done.status == 0, "\(done.said)")
        #expect(done.error.contains("which is trusted already (Certs/anchors/own.pem)"), "\(done.error)")
        #expect(done.error.contains("\"mine\"") && done.error.contains("which is there already"), "\(done.error)")
        #expect(try anchors().count == 2)
        try bench.succeed("profile", "remove", "example.corp")
        #expect(try bench.state() == before)
    }

    /// A different identity of the same name is not the profile's.
    @Test func anotherIdentityKeepsItsName() throws {
        try MadeProfile.certificate("other", "/CN=laptop", extensions: MadeProfile.client, in: bench.folder)
        let other = try MadeProfile.pkcs12("other", password: "secret", in: bench.folder)
        try bench.sandbox.succeed("certificate", "import", other, "--password-stdin", input: "secret\n")
        let before = try bench.state()
        let done = try bench.install(try bench.write(whole))
        #expect(done.status == 0 && done.error.contains("\"laptop-2\""), "\(done.said)")
        #expect(try bench.vault.identityKeys["laptop"] == before.contents.identityKeys["laptop"])
        try bench.succeed("profile", "remove", "example.corp")
        #expect(try bench.state() == before)
    }

    @Test func whatTwoProfilesContainStaysUntilBothAreRemoved() throws {
        let before = try bench.state()
        for name in ["first", "second"] {
            let done = try bench.install(try bench.write([bench.root, bench.identity], identifier: name, as: name))
            try #require(done.status == 0, "\(done.said)")
        }
        let both = try bench.files()
        let removed = try bench.sandbox.countersign("profile", "remove", "first")
        #expect(removed.status == 0 && removed.error.contains("the profile \"second\" contains it, too"), "\(removed)")
        #expect(try bench.files() == both)
        try bench.succeed("profile", "remove", "second")
        #expect(try bench.state() == before)
    }

    @Test func theSameIdentifierReplacesTheFormerVersion() throws {
        let before = try bench.state()
        try #require(try bench.install(try bench.write(whole)).status == 0)
        let root = try #require(try bench.vault.profiles["example.corp"]?.anchors.first?.file)
        try MadeProfile.certificate("second", "/CN=Second", extensions: MadeProfile.authority, in: bench.folder)
        let next = try bench.write([
            bench.root, MadeProfile.anchor(bench.folder.file("second.pem"), "example.second"),
        ])
        let done = try bench.install(next)
        #expect(done.status == 0 && done.error.contains("replaces"), "\(done.said)")
        let record = try #require(try bench.vault.profiles["example.corp"])
        #expect(record.identities == [] && record.anchors.compactMap(\.file).count == 2)
        #expect(try anchors() == record.anchors.compactMap(\.file).sorted())
        #expect(record.anchors.first?.file == root)
        #expect(try bench.vault.identityKeys.isEmpty)
        try bench.succeed("profile", "remove", "example.corp")
        #expect(try bench.state() == before)
    }

    @Test func oneRefusedPayloadRefusesAll() throws {
        let before = try bench.state()
        let scep = MadeProfile.payload(
            "com.apple.security.scep", "example.scep", ["PayloadDisplayName": "SCEP of Corp"])
        let file = try bench.write(whole + [scep])
        let refused = try bench.install(file)
        #expect(refused.status == 1 && refused.error.contains("payload \"SCEP of Corp\" cannot be"), "\(refused.said)")
        #expect(refused.error.contains("SCEP protects the request") && refused.error.contains("--skip-refused"))
        #expect(try bench.state() == before)
        let done = try bench.install(file, "--skip-refused")
        #expect(done.status == 0, "\(done.said)")
        #expect(try anchors().count == 2)
    }

    @Test(arguments: ["install", "show"])
    func aProfileIsNotReadFromAURL(command: String) throws {
        let result = try Sandbox().countersign("profile", command, "https://corp.example/c.mobileconfig")
        #expect(result.status == 1 && result.error.contains("a profile is read from a file"), "\(result.said)")
        #expect(result.error.contains("download the profile first"), "\(result.said)")
    }

    @Test func thePasswordOfAnIdentityIsAskedFor() throws {
        let file = try bench.write([MadeProfile.identity(bench.folder.file("laptop.p12"), "example.laptop")])
        let without = try bench.install(file)
        #expect(without.status == 1 && without.error.contains("--password-stdin"), "\(without.said)")
        let wrong = try bench.install(file, "--password-stdin", input: "wrong\n")
        #expect(wrong.status == 1 && wrong.error.contains("the password does not open the file"), "\(wrong.said)")
        let done = try bench.install(file, "--password-stdin", input: "secret\n")
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.vault.identityKeys["laptop"] != nil)
    }

    /// The private key is in the vault and in no other file.
    @Test func noPrivateKeyIsInAFile() throws {
        try #require(try bench.install(try bench.write(whole)).status == 0)
        let key = try #require(try bench.vault.identityKeys["laptop"]?.privateKey)
        let secret = key.withBytes { Array($0).suffix(40).map { $0 } }
        let names = FileManager.default.enumerator(atPath: bench.sandbox.home)?.compactMap { $0 as? String } ?? []
        #expect(names.count > 5)
        for name in names {
            let bytes = TextFile.bytes("\(bench.sandbox.home)/\(name)")
            #expect(Data(bytes).range(of: Data(secret)) == nil, "\(name)")
            #expect(!String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY"), "\(name)")
        }
    }

    @Test func aRunningServerAppliesProfilesAtOnce() throws {
        try bench.succeed("sites", "add", "https://git.corp.example", "answer=certificate")
        let server = try bench.sandbox.serve()
        let done = try bench.install(try bench.write(whole))
        try #require(done.status == 0, "\(done.said)")
        let isRead = poll { server.errorOutput.contains("1 identity") ? true : nil }
        #expect(isRead == true, "\(server.errorOutput)")
    }

    // MARK: Enrolment

    /// A home with an EST server that requires a password or a client certificate of its own CA, and a profile with
    /// such a certificate.
    static func enrolling(_ control: [String: any Sendable] = [:]) throws -> (
        bench: ProfileSandbox, est: EnrolledSandbox, file: String
    ) {
        let est = try EnrolledSandbox(control, credential: nil)
        let bench = try ProfileSandbox(est.sandbox)
        for (name, place) in [("est.pem", est.server.certificate("ca")), ("est.key", est.server.key("ca"))] {
            try bench.folder.write(name, TextFile.bytes(place))
        }
        try MadeProfile.certificate(
            "bootstrap", "/CN=bootstrap", extensions: MadeProfile.client, issuer: "est", in: bench.folder)
        let identity = try MadeProfile.pkcs12("bootstrap", password: "secret", in: bench.folder)
        let service = MadeProfile.payload(
            "countersign.est", "example.est",
            [
                "URL": est.server.address() + "/.well-known/est", "Name": "vpn",
                "Anchors": [["der": est.server.certificate("ca")]],
            ])
        let file = try bench.write([
            bench.root, MadeProfile.identity(identity, "example.bootstrap", password: "secret"), service,
        ])
        return (bench, est, file)
    }

    @Test func anEnrolmentIsInstalledTogetherWithTheRest() throws {
        let (bench, est, file) = try Self.enrolling()
        let before = try bench.state()
        let done = try bench.install(file)
        try #require(done.status == 0, "\(done.said)")
        #expect(done.output == "profile \"example.corp\" installed, identity \"vpn\" enrolled\n")
        #expect(est.server.requests("simpleenroll").map(\.client) == ["CN=bootstrap"], "\(est.server.log)")
        #expect(try est.isVerified("vpn"))
        let contents = try bench.vault
        #expect(contents.enrollments["vpn"]?.owner == nil && contents.enrollments["vpn"]?.identity == "bootstrap")
        #expect(contents.pendingEnrollments.isEmpty)
        // The certificate is renewed like any other.
        let renewed = try est.refresh("vpn")
        #expect(renewed.status == 0, "\(renewed.said)")
        try bench.succeed("profile", "remove", "example.corp")
        #expect(try bench.state() == before)
    }

    @Test func aServiceThatRefusesLeavesNothing() throws {
        let (bench, est, file) = try Self.enrolling(["clientCertificate": "none"])
        let before = try bench.state()
        let done = try bench.install(file)
        #expect(done.status == 1, "\(done.said)")
        #expect(done.error.contains("has issued no certificate, so the profile is not installed"), "\(done.error)")
        #expect(!est.server.log.isEmpty)
        #expect(try bench.state() == before)
    }

    @Test func aServiceThatDecidesLaterIsAskedAgain() throws {
        let (bench, est, file) = try Self.enrolling(["pending": 1])
        let before = try bench.state()
        let done = try bench.install(file)
        try #require(done.status == 0 && done.output.contains("is requested, next request"), "\(done.said)")
        #expect(try bench.vault.pendingEnrollments["vpn"]?.plan?.owner == nil)
        #expect(try bench.succeed("certificate", "list").contains("pending since"))
        let later = try est.refresh("vpn")
        #expect(later.status == 0, "\(later.said)")
        #expect(try est.isVerified("vpn"))
        try bench.succeed("profile", "remove", "example.corp")
        #expect(try bench.state() == before)
    }
}

/// Profiles that the pages of a sign-in deliver, as the vault's operations see them.
@Suite(.waiting) struct ProfileOwnerTests {
    private let bench: ProfileSandbox
    private let operations: VaultOperations
    private let empty: HomeState

    init() throws {
        bench = try ProfileSandbox()
        let vault = try SealedVault(home: bench.sandbox.home).open { throw HarnessError("no passphrase") }
        operations = VaultOperations(
            home: Home(path: bench.sandbox.home), vault: vault, now: { Int64(Date().timeIntervalSince1970) })
        empty = try bench.state()
    }

    /// On a thread of its own: operations block until tasks of theirs are done.
    private func perform(_ operation: some VaultOperation, _ secret: Secret?) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            DispatchQueue.global().async { [operations] in
                continuation.resume(with: Result { _ = try operations.perform(operation, secret: secret) })
            }
        }
    }

    private func install() async throws {
        let read = try ReadProfile(
            TextFile.bytes(try bench.write([bench.root, bench.identity])),
            anchors: TrustAnchors(system: false), at: Int64(Date().timeIntervalSince1970))
        let plan = ProfilePlan(
            read, in: ProfilePlan.Surroundings(now: Int64(Date().timeIntervalSince1970)),
            password: { _ throws(CountersignError) in throw CountersignError(.refused, "nobody is asked") })
        let (new, keys) = try plan.new(skipsRefused: false, owner: .init(signIn: "work", isPending: true))
        try await perform(InstallProfile(new), keys)
    }

    private func storeSignIn() async throws {
        let new = NewSignIn(
            name: "work", profile: "{\"issuer\": \"http://127.0.0.1:1\", \"client_id\": \"c\"}", source: "",
            issuer: "http://127.0.0.1:1", subject: "", account: "", scope: "", sites: [], signedIn: 1,
            expires: 4_000_000_000, formerIssuer: nil)
        let tokens = SignInTokens(access: Secret(utf8: "canary-access"), refresh: nil, identity: nil)
        try await perform(StoreSignIn(new), tokens.encoded)
    }

    @Test func aProfileStaysWhileItsSignInGoesOn() async throws {
        let lock = try VaultOperations.enrollingLock(of: "work", in: Home(path: bench.sandbox.home))
        try #require(lock != nil)
        try await install()
        #expect(try bench.succeed("profile", "list", "--no-header").contains("example.corp"))
        #expect(try bench.vault.profiles["example.corp"]?.owner == .init(signIn: "work", isPending: true))
        withExtendedLifetime(lock) {}
    }

    /// The next command removes it.
    @Test func aProfileOfACommandThatWasKilledIsRemoved() async throws {
        try await install()
        #expect(try bench.vault.profiles["example.corp"] != nil)
        #expect(try !bench.succeed("profile", "list", "--no-header").contains("example.corp"))
        #expect(try bench.state() == empty)
    }

    @Test func unenrollRemovesTheProfilesOfASignIn() async throws {
        let lock = try VaultOperations.enrollingLock(of: "work", in: Home(path: bench.sandbox.home))
        try await install()
        try await storeSignIn()
        withExtendedLifetime(lock) {}
        #expect(try bench.vault.profiles["example.corp"]?.owner == .init(signIn: "work", isPending: false))
        let status = try bench.succeed("status")
        #expect(status.contains("example.corp"), "\(status)")
        let other = try bench.install(try bench.write([bench.intermediate], identifier: "own", as: "own"))
        #expect(other.status == 0, "\(other.said)")
        let done = try bench.sandbox.countersign("unenroll", "work", "--no-sign-out")
        #expect(done.status == 0 && done.output.contains("profile \"example.corp\" removed"), "\(done.said)")
        #expect(try bench.vault.profiles.keys.sorted() == ["own"] && bench.vault.identityKeys.isEmpty)
        try bench.succeed("profile", "remove", "own")
        var files = try bench.files()
        files = files.filter { !$0.key.hasPrefix("AllowedSites/") }
        #expect(files == empty.files)
    }
}
