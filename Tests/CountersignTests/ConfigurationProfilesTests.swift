// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

import class CountersignCryptography.Secret

/// Configuration profiles in an app.
@Suite(.waiting) struct ConfigurationProfilesTests {
    private let folder: TemporaryFolder
    private let profiles: ConfigurationProfiles
    private var home: String { folder.file("home") }

    /// A home that does not exist yet, a root, and an identity whose file has the password "secret".
    init() throws {
        folder = try TemporaryFolder("profiles")
        try MadeProfile.certificate("root", "/O=Example/CN=Root", extensions: MadeProfile.authority, in: folder)
        try MadeProfile.certificate(
            "laptop", "/O=Example/CN=laptop", extensions: MadeProfile.client, issuer: "root", in: folder)
        _ = try MadeProfile.pkcs12("laptop", password: "secret", in: folder)
        profiles = ConfigurationProfiles(try SignIns(home: URL(filePath: folder.file("home"))))
    }

    private var root: [String: any Sendable] { MadeProfile.anchor(folder.file("root.pem"), "example.root") }

    private func document(_ payloads: [[String: any Sendable]]) throws -> [UInt8] {
        TextFile.bytes(try MadeProfile.write("corp.mobileconfig", payloads, in: folder))
    }

    @Test func aProfileIsShownThenInstalledThenRemoved() async throws {
        let identity = MadeProfile.identity(folder.file("laptop.p12"), "example.laptop")
        let document = try document([root, identity, MadeProfile.payload("com.apple.webClip.managed", "example.clip")])
        let plan = try await profiles.plan(for: document) { name in
            #expect(!name.isEmpty)
            return Password("secret")
        }
        #expect(plan.identifier == "example.corp" && plan.name == "Corp")
        #expect(plan.organization == "Example Corporation" && plan.replaced == nil)
        #expect(plan.signatures == ["not signed"] && !plan.isTrusted)
        #expect(plan.steps.map(\.kind) == [.anchor, .identity, .skipped])
        #expect(plan.steps[0].text.contains("CN=Root") && plan.steps[1].text.contains("\"laptop\""))
        #expect(!FileManager.default.fileExists(atPath: home))

        let installed = try await profiles.install(plan)
        #expect(installed.identities == ["laptop"] && installed.anchorFiles.count == 1)
        #expect(installed.identifier == "example.corp" && installed.signIn == nil && !installed.isTrusted)
        #expect(try await profiles.all() == [installed])
        let anchor = try #require(installed.anchorFiles.first)
        #expect(FileManager.default.fileExists(atPath: "\(home)/\(anchor)"))
        #expect(try await profiles.plan(for: document) { _ in Password("secret") }.replaced == installed)

        let removed = try await profiles.remove("example.corp")
        #expect(removed.anchorFiles == [anchor] && removed.identities == ["laptop"] && removed.kept.isEmpty)
        #expect(try await profiles.all().isEmpty && !FileManager.default.fileExists(atPath: "\(home)/\(anchor)"))
        let error = await #expect(throws: ChallengeError.self) { try await profiles.remove("example.corp") }
        #expect(error?.code == .profileMissing && error?.fault == .caller)
    }

    // MARK: For a sign-in

    /// Installs the profiles that a page delivers.
    private struct App: InteractiveWebviewHandler {
        let profiles: ConfigurationProfiles

        func installProfile(_ document: [UInt8], signIn: String) async throws -> String {
            try await profiles.install(try await profiles.plan(for: document), signIn: signIn).identifier
        }
    }

    /// Another command, which removes items without an owner.
    private func finish() throws {
        let vault = try SealedVault(home: home).open { () throws in Secret(utf8: "") }
        try VaultOperations(home: Home(path: home), vault: vault, now: { ChallengeController.now() }).finishProfiles()
    }

    @Test func aProfileOfASignInWaitsForItAndGoesIfItFails() async throws {
        let document = try document([root])
        var installer: AppProfileInstaller? = AppProfileInstaller(
            app: App(profiles: profiles), home: Home(path: home))
        #expect(installer?.wasAsked == false)
        #expect(try await installer?.install(document, from: "mdm.example", for: "work") == "example.corp")
        try finish()
        #expect(try await profiles.all().map(\.signIn) == ["work"] && installer?.wasAsked == true)
        let other = try await profiles.plan(for: document)
        let error = await #expect(throws: ChallengeError.self) { try await profiles.install(other, signIn: "other") }
        #expect(error?.code == .nameInUse)
        // The process has ended.
        installer = nil
        try finish()
        #expect(try await profiles.all().isEmpty)
    }

    @Test func aProfileNeedsItsSignIn() async throws {
        let plan = try await profiles.plan(for: try document([root]))
        let error = await #expect(throws: ChallengeError.self) { try await profiles.install(plan, signIn: "work") }
        #expect(error?.code == .signInMissing && error?.fault == .caller)
        #expect(try await profiles.all().isEmpty)
    }

    @Test func aProfileGoesWithTheSignInThatHasBroughtIt() async throws {
        let other = try EnrollmentHome()
        let profiles = ConfigurationProfiles(other.signIns)
        try await other.signIn()
        let installed = try await profiles.install(try await profiles.plan(for: try document([root])), signIn: "work")
        #expect(installed.signIn == "work")
        try await other.signIns.signOut("work")
        #expect(try await profiles.all().isEmpty)
        let anchor = try #require(installed.anchorFiles.first)
        #expect(!FileManager.default.fileExists(atPath: "\(other.path)/\(anchor)"))
    }

    @Test func aPayloadThatCannotBeInstalledRefusesTheProfile() async throws {
        let identity = MadeProfile.identity(folder.file("laptop.p12"), "example.laptop")
        let plan = try await profiles.plan(for: try document([root, identity]))
        #expect(plan.steps.map(\.kind) == [.anchor, .refused])
        #expect(plan.steps.last?.text.contains("it needs its password") == true)
        let error = await #expect(throws: ChallengeError.self) { try await profiles.install(plan) }
        #expect(error?.code == .profileFaulty && error?.detail.contains("nothing was installed") == true)
        #expect(!FileManager.default.fileExists(atPath: home))
        let installed = try await profiles.install(plan, skippingRefused: true)
        #expect(installed.identities.isEmpty && installed.anchorFiles.count == 1)
    }

    @Test func theHomeCanChangeBetweenThePlanAndTheInstallation() async throws {
        let identity = MadeProfile.identity(folder.file("laptop.p12"), "example.laptop", password: "secret")
        let plan = try await profiles.plan(for: try document([identity]))
        try folder.write("home/Certs/identities/laptop.pem", TextFile.bytes(folder.file("laptop.pem")))
        let error = await #expect(throws: ChallengeError.self) { try await profiles.install(plan) }
        #expect(error?.code == .nameInUse, "\(error.debugDescription)")
        #expect(try await profiles.all().isEmpty)
    }

    @Test func aDocumentThatIsNoProfileIsFaulty() async throws {
        for document in [Array("<plist></plist>".utf8), [0x30, 0], []] as [[UInt8]] {
            let error = await #expect(throws: ChallengeError.self) { try await profiles.plan(for: document) }
            #expect(error?.code == .profileFaulty && error?.fault == .configuration, "\(error.debugDescription)")
        }
    }

    @Test func anAlteredProfileIsFaultyAndASignedOneNamesItsSigner() async throws {
        let file = try MadeProfile.write("corp.mobileconfig", [root], in: folder)
        let signed = TextFile.bytes(
            try MadeProfile.sign(
                file, as: "signed", by: [(folder.file("laptop.pem"), folder.file("laptop.key"))], in: folder))
        let plan = try await profiles.plan(for: signed)
        #expect(plan.signatures.count == 1 && plan.signatures[0].contains("CN=laptop") && !plan.isTrusted)
        let mark = Array("Example Corporation".utf8)
        let start = try #require(signed.indices.first { signed[$0...].starts(with: mark) })
        var altered = signed
        altered[start] = UInt8(ascii: "X")
        let error = await #expect(throws: ChallengeError.self) { try await profiles.plan(for: altered) }
        #expect(error?.code == .profileFaulty, "\(error.debugDescription)")
    }
}
