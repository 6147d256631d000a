// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Glibc
import Testing

@testable import CountersignHome

/// The places that keep the vault's passphrase.
@Suite struct VaultKeeperTests {
    private static let passphrase = Secret(utf8: "canary passphrase é")

    private func home(_ folder: TemporaryFolder) throws -> Home {
        let home = Home(path: folder.file("home"))
        try home.prepare()
        return home
    }

    private func failure(_ keeper: VaultKeeper, _ environment: [String: String]) -> String {
        do throws(CountersignError) {
            _ = try keeper.passphrase(environment: environment, patience: .seconds(5))
            return ""
        } catch {
            return error.detail
        }
    }

    @Test(arguments: VaultKeeper.Place.allCases) func theFileNamesThePlaceAndNoSecret(place: VaultKeeper.Place) throws {
        let folder = try TemporaryFolder()
        let home = try home(folder)
        #expect(try VaultKeeper.read(home) == nil)
        let keeper = VaultKeeper(home: home, place: place)
        try keeper.write()
        #expect(try VaultKeeper.read(home) == keeper)
        var found = stat()
        #expect(stat(folder.file("home/vault.keeper"), &found) == 0 && found.st_mode & 0o777 == 0o600)
        try VaultKeeper.removeFile(of: home)
        #expect(try VaultKeeper.read(home) == nil)
    }

    @Test(arguments: ["", "{", #"{"format":2,"place":"keyring"}"#, #"{"format":1,"place":"elsewhere"}"#])
    func anotherFileIsAnError(text: String) throws {
        let folder = try TemporaryFolder()
        let home = try home(folder)
        try folder.write("home/vault.keeper", text)
        #expect(throws: CountersignError(.configuration, "")) { try VaultKeeper.read(home) }
    }

    @Test func theKeyringKeepsThePassphraseOfEachHome() throws {
        let folder = try TemporaryFolder()
        let keyring = try KeyringServer()
        let keeper = VaultKeeper(home: try home(folder), place: .keyring)
        try keeper.store(Self.passphrase, environment: keyring.environment)
        #expect(try keeper.passphrase(environment: keyring.environment) == Self.passphrase)
        let path = try #require(HomeFile.resolved(folder.file("home")))
        #expect(try keyring.lookUp("application", "countersign", "home", path) == Self.passphrase.utf8Text)
        try keeper.remove(environment: keyring.environment)
        #expect(failure(keeper, keyring.environment).contains("the keyring has no entry"))
        #expect(failure(keeper, [:]).contains("there is no session bus"))
    }

    @Test func systemdGivesThePassphraseToTheService() throws {
        let folder = try TemporaryFolder()
        let keeper = VaultKeeper(home: try home(folder), place: .systemd)
        let environment = ["CREDENTIALS_DIRECTORY": folder.file("credentials")]
        try folder.write("credentials/other", "x")
        chmod(folder.file("credentials"), 0o500)
        #expect(failure(keeper, environment).contains("systemd has given this service no credential"))
        chmod(folder.file("credentials"), 0o700)
        let file = try folder.write("credentials/countersign.vault", "canary passphrase é\n")
        for (mode, folderMode, isUsed): (mode_t, mode_t, Bool) in [
            (0o400, 0o500, true), (0o440, 0o500, false), (0o404, 0o500, false), (0o400, 0o700, true),
            (0o400, 0o755, false), (0o400, 0o770, false),
        ] {
            chmod(file, mode)
            chmod(folder.file("credentials"), folderMode)
            let detail = failure(keeper, environment)
            #expect(detail.isEmpty == isUsed && !detail.contains("canary"), "\(String(mode, radix: 8)) \(detail)")
        }
        chmod(folder.file("credentials"), 0o700)
        #expect(try keeper.passphrase(environment: environment) == Self.passphrase)
    }

    /// systemd itself decrypts what was stored. It does so for root only, up to version 255.
    @Test(.enabled(if: geteuid() == 0)) func systemdDecryptsWhatWasStored() throws {
        let folder = try TemporaryFolder()
        let keeper = VaultKeeper(home: try home(folder), place: .systemd)
        try keeper.store(Self.passphrase, environment: [:])
        let path = folder.file("home/vault.systemd")
        #expect(!folder.text("home/vault.systemd").contains("canary"))
        let result = try Command.run(
            Tool.path("systemd-creds"), ["decrypt", "--name=countersign.vault", path, "-"], in: folder)
        #expect(result.output == Self.passphrase.utf8Text, "\(result.said)")
        #expect(try keeper.passphrase(environment: [:]) == Self.passphrase)
        #expect(keeper.remark?.contains("LoadCredentialEncrypted=countersign.vault:\(path)") == true)
        try folder.write("home/vault.systemd", "bm90IGEgY3JlZGVudGlhbA==\n")
        #expect(failure(keeper, [:]).contains("systemd-creds ended with status 1"))
        try keeper.remove(environment: [:])
        #expect(failure(keeper, [:]).contains("CREDENTIALS_DIRECTORY is not set"))
    }

    @Test func theTPMOpensWhatItHasSealed() throws {
        let folder = try TemporaryFolder()
        let tpm = try SoftTPM()
        let keeper = VaultKeeper(home: try home(folder), place: .tpm)
        try keeper.store(Self.passphrase, environment: tpm.environment)
        #expect(!folder.text("home/vault.tpm").contains("canary"))
        // Its objects are gone each time.
        for _ in 1...4 { #expect(try keeper.passphrase(environment: tpm.environment) == Self.passphrase) }
        let other = try SoftTPM()
        #expect(failure(keeper, other.environment).contains("tpm2_load ended with status"))
        let long = Secret([UInt8](repeating: 65, count: 129))
        #expect(throws: CountersignError(.environment, "")) {
            try keeper.store(long, environment: tpm.environment)
        }
        try keeper.remove(environment: tpm.environment)
        #expect(failure(keeper, tpm.environment).contains("vault.tpm is missing"))
    }
}
