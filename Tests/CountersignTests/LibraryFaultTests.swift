// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import Foundation
import CountersignTestOrigin
import Testing

@testable import Countersign
@testable import CountersignNIO

/// Every fault is reported as a typed error, and never traps.
@Suite(.waiting) struct LibraryFaultTests {
    private struct Told: Error {}

    private static func opening(
        _ home: String, passphrase: (() throws -> Password)? = nil
    ) -> ChallengeError? {
        do throws(ChallengeError) {
            _ = try ChallengeController(home: URL(filePath: home), passphrase: passphrase)
            return nil
        } catch {
            #expect(!error.detail.isEmpty && !error.detail.hasSuffix("."))
            #expect(!error.description.contains(LibraryHome.passphrase))
            return error
        }
    }

    @Test func anErrorIsLocalized() {
        let error: any Error = ChallengeError(
            .siteNotAllowed, "a site is not on the list", listLine: "AllowedSites/work.sites:3", hint: "add it")
        #expect(error.localizedDescription == "a site is not on the list (AllowedSites/work.sites:3)")
        #expect((error as? any LocalizedError)?.recoverySuggestion == "add it")
    }

    @Test func aMissingHome() throws {
        let folder = try TemporaryFolder("library")
        let error = Self.opening(folder.file("nowhere"))
        #expect(error?.code == .homeMissing)
        #expect(error?.fault == .configuration)
        #expect(error?.hint != nil)
    }

    @Test func aHomeThatIsAFile() throws {
        let folder = try TemporaryFolder("library")
        #expect(Self.opening(try folder.write("home", "")) == ChallengeError(.homeMissing, "is not a folder"))
    }

    @Test func aHomeThatIsNoFolderURL() throws {
        let address = try #require(URL(string: "https://git.corp.example/home"))
        let error = #expect(throws: ChallengeError.self) { try ChallengeController(home: address) }
        #expect(error?.code == .homeMissing)
        #expect(error?.detail == "the home is not the URL of a folder")
    }

    @Test func aRelativePathIsResolvedOnce() throws {
        let home = try LibraryHome("https://git.corp.example\n")
        let up = String(repeating: "../", count: FileManager.default.currentDirectoryPath.count { $0 == "/" })
        let controller = try ChallengeController(home: URL(filePath: "\(up)\(home.path.dropFirst())"))
        #expect(ChallengeProxy(controller).trustBundlePath.hasPrefix("/"))
        #expect(try controller.canHandle(.git(.basic)))
    }

    @Test func anUnreadableList() throws {
        let home = try LibraryHome("https://git.corp.example\n")
        try FileManager.default.createSymbolicLink(
            atPath: home.folder.file("home/AllowedSites/more.sites"), withDestinationPath: "more.sites")
        let error = Self.opening(home.path)
        #expect(error?.code == .homeUnreadable)
        #expect(error?.fault == .environment)
        #expect(error?.detail.contains("AllowedSites/more.sites") == true)
    }

    @Test func aFaultyListIsReportedWithItsFirstFaultyLine() throws {
        let home = try LibraryHome("https://git.corp.example\nhttps://a.example awnser=basic\nhttps://*\n")
        let error = Self.opening(home.path)
        #expect(error?.code == .listFaulty)
        #expect(error?.listLine == "AllowedSites/test.sites:2")
        #expect(error?.detail.contains("unknown option \"awnser\"") == true)
        #expect(error?.detail.contains("AllowedSites/test.sites:3") == true)
    }

    @Test func anInvalidCertificate() throws {
        let home = try LibraryHome("")
        try home.folder.write(
            "home/Certs/anchors/bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        let error = Self.opening(home.path)
        #expect(error?.code == .homeFaulty)
        #expect(error?.detail.contains("Certs/anchors/bad.pem") == true)
    }

    @Test func anInvalidVault() throws {
        let home = try LibraryHome("")
        try home.folder.write("home/vault", "this is no vault")
        chmod(home.folder.file("home/vault"), 0o600)
        #expect(Self.opening(home.path)?.code == .vaultFaulty)
    }

    @Test func aVaultWithoutItsPassphrase() throws {
        let home = try LibraryHome("", openedBy: .passphrase(Secret(utf8: LibraryHome.passphrase)))
        let unasked = Self.opening(home.path)
        #expect(unasked?.code == .vaultLocked)
        #expect(unasked?.detail == "the vault requires a passphrase, and none was given")
        #expect(unasked?.fault == .caller)
        #expect(unasked?.hint == "pass `passphrase:` to the initialiser")
        let unanswered = Self.opening(home.path) { throw Told() }
        #expect(unanswered?.code == .vaultLocked)
        #expect(unanswered?.detail == "the vault requires a passphrase, and the closure threw an error")
        #expect(Self.opening(home.path) { Password("wrong") }?.code == .vaultLocked)
        #expect(Self.opening(home.path) { Password(LibraryHome.passphrase) } == nil)
    }

    @Test func aHomeWithoutAVaultHasNothingToAnswerWith() throws {
        let folder = try TemporaryFolder("library")
        try folder.write("home/AllowedSites/test.sites", "https://git.corp.example\n")
        let controller = try ChallengeController(home: URL(filePath: folder.file("home")))
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        #expect(error?.code == .nothingToAnswerWith)
    }

    @Test(arguments: [-1, 65536, 70000, .max])
    func anInvalidPortIsTheCallersFault(_ port: Int) async throws {
        let controller = try LibraryHome("").controller()
        let error = await #expect(throws: ChallengeError.self) {
            try await ChallengeProxy(controller, port: port).run()
        }
        #expect(error?.code == .proxyFailed)
        #expect(error?.fault == .caller)
    }

    @Test func aProxyThatIsRunTwiceIsTheCallersFault() async throws {
        let proxy = ChallengeProxy(try LibraryHome("").controller())
        let running = Task { try await proxy.run() }
        _ = try await proxy.address
        let error = await #expect(throws: ChallengeError.self) { try await proxy.run() }
        #expect(error?.code == .proxyFailed)
        #expect(error?.fault == .caller)
        running.cancel()
        try await running.value
    }

    @Test func anUnwritableFolderIsNotTheServersFault() {
        let system = ChallengeError(refreshing: CountersignError(.environment, "cannot open the lock"))
        #expect(system.code == .homeUnreadable)
        #expect(system.fault == .environment)
        #expect(ChallengeError(refreshing: CountersignError(.unknownName, "none")).code == .nothingToAnswerWith)
        #expect(ChallengeError(refreshing: CountersignError(.refused, "no")).fault == .peer)
        let refused = CredentialRefused(
            generation: 1, name: "enrollment", isToken: false, server: "s", reason: "401", turnsDownRequest: true)
        #expect(ChallengeError(refreshing: refused).code == .refreshFailed)
    }

    static let spaces: [ProtectionSpace] = [
        ProtectionSpace(host: "", authenticationMethod: .basic),
        ProtectionSpace(scheme: "ftp", host: "git.corp.example", authenticationMethod: .basic),
        ProtectionSpace(scheme: "", host: "git.corp.example", authenticationMethod: .ntlm),
        ProtectionSpace(host: "git.corp.example", port: 0, authenticationMethod: .basic),
        ProtectionSpace(host: "git.corp.example", port: -443, authenticationMethod: .basic),
        ProtectionSpace(host: "git.corp.example", port: 65536, authenticationMethod: .clientCertificate),
        ProtectionSpace(host: "git.corp.example", port: .max, authenticationMethod: .basic),
        ProtectionSpace(host: "https://git.corp.example", authenticationMethod: .basic),
        ProtectionSpace(host: "jdoe@git.corp.example", authenticationMethod: .basic),
        ProtectionSpace(host: "git corp.example", authenticationMethod: .basic),
        ProtectionSpace(host: "git\u{0}.corp.example", authenticationMethod: .basic),
        ProtectionSpace(host: "[::1", authenticationMethod: .basic),
        ProtectionSpace(host: "1.2.3", authenticationMethod: .basic),
        ProtectionSpace(host: String(repeating: "a.", count: 500) + "example", authenticationMethod: .basic),
    ]

    @Test(arguments: spaces)
    func aSpaceWithoutASiteIsTheCallersFault(_ space: ProtectionSpace) async throws {
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(space) }
        #expect(error?.code == .invalidProtectionSpace)
        #expect(error?.fault == .caller)
        #expect(error?.hint != nil)
        let challenge = AuthenticationChallenge(protectionSpace: space)
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
    }

    @Test func anInvalidHostIsQuotedAsGiven() throws {
        let controller = try LibraryHome("").controller()
        let space = ProtectionSpace(host: "git.corp.example:8443", authenticationMethod: .basic)
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(space) }
        #expect(error?.detail == "\"git.corp.example:8443\" is not an IPv6 address")
        #expect(error?.hint == "the host is a name or an address, without scheme, port and path")
    }

    /// The server chooses the realm, which is printed with events.
    @Test func aSpaceIsPrintedOnOneShortLine() async throws {
        let space = ProtectionSpace(
            host: "a\r\nb", realm: String(repeating: "r\"\n", count: 3500), authenticationMethod: .other("x\u{1B}"))
        let text = "\(space)"
        #expect(text.hasPrefix(#"https://a\r\nb:443 x\u{1B} "r\"\nr\"\n"#), "\(text)")
        #expect(text.count < 500)
        #expect(text.hasSuffix("…\""))
        #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
        #expect("\(ProtectionSpace.git(.basic))" == #"https://git.corp.example:443 Basic "r""#)
        #expect("\(ProtectionSpace(host: "::1", authenticationMethod: .ntlm))" == "https://[::1]:443 NTLM")
        // It is checked like any other space.
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        var long = space
        long.host = "git.corp.example"
        long.authenticationMethod = .basic
        #expect(try controller.canHandle(long))
    }

    @Test(arguments: ["GIT.Corp.Example", "git.corp.example."])
    func everySpellingOfAHostMeansTheSame(_ host: String) throws {
        let controller = try LibraryHome("https://git.corp.example\nhttps://[::1]:8443\n").controller()
        #expect(try controller.canHandle(ProtectionSpace(scheme: "HTTPS", host: host, authenticationMethod: .basic)))
        for address in ["::1", "[::1]"] {
            #expect(try controller.canHandle(ProtectionSpace(host: address, port: 8443, authenticationMethod: .basic)))
        }
    }

    @Test func noPrintedValueContainsAPassword() async throws {
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: .git(.basic)))
        var dumped = ""
        dump(credential, to: &dumped)
        let challenge = AuthenticationChallenge(protectionSpace: .git(.basic), proposedCredential: credential)
        for text in [dumped, "\(credential as Any)", String(reflecting: credential), "\(challenge)"] {
            #expect(!text.contains(LibraryHome.password))
            #expect(text.contains("jdoe"))
        }
    }
}
