// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Testing

@testable import CountersignVault

@Suite struct SealedVaultTests {
    private let home: TemporaryHome

    init() throws {
        home = try TemporaryHome()
    }

    @Test func firstUseMakesAVaultAndItsKey() throws {
        #expect(try !home.sealedVault.exists())
        let vault = try home.sealedVault.openOrCreate(passphrase: unasked)
        #expect(vault.contents == VaultContents())
        #expect(vault.key == .file)
        #expect(home.names == ["vault", "vault.key", "vault.lock"])
        for name in home.names { #expect(try home.mode(name) == 0o600, "\(name)") }
        try vault.update(fill)
        #expect(try home.sealedVault.openOrCreate(passphrase: unasked).contents == filled())
    }

    @Test func modesDoNotDependOnTheUmask() async throws {
        await #expect(processExitsWith: .success) {
            for mask in [0o777, 0] as [mode_t] {
                umask(0o022)
                let home = try TemporaryHome()
                umask(mask)
                let vault = try home.sealedVault.openOrCreate(passphrase: unasked)
                try vault.update(fill)
                for name in home.names { #expect(try home.mode(name) == 0o600, "\(name)") }
            }
            let home = try TemporaryHome()
            let deeper = SealedVault(home: "\(home.path)/a")
            _ = try deeper.create(openedBy: .file)
            #expect(try home.mode("a") == 0o700)
            for name in ["vault", "vault.key", "vault.lock"] { unlink("\(home.path)/a/\(name)") }
        }
    }

    @Test func aMissingVaultIsMissing() throws {
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .missing)
        #expect(try code { _ = try home.sealedVault.status() } == .missing)
        #expect(try code { _ = try SealedVault(home: "/nonexistent/home").open(passphrase: unasked) } == .missing)
        #expect(try home.sealedVault.storage.version(of: .vault) == nil)
    }

    @Test func creatingTwiceIsRefused() throws {
        _ = try home.sealedVault.create(openedBy: .file)
        let before = try home.bytes("vault")
        #expect(try code { _ = try home.sealedVault.create(openedBy: .file) } == .exists)
        #expect(try home.bytes("vault") == before)
    }

    @Test func anExistingKeyIsNotOverwritten() throws {
        let key = KeyFileText.encode([Randomness.secret(32)]).withBytes { Array($0) }
        try home.put(key, "vault.key")
        try home.sealedVault.create(openedBy: .file).update(fill)
        #expect(try home.bytes("vault.key") == key)
        #expect(try home.sealedVault.open(passphrase: unasked).contents == filled())
    }

    @Test func aMissingVaultWithABackupIsNotReplacedByAnEmptyOne() throws {
        try home.sealedVault.create(openedBy: .file).update(fill)
        unlink("\(home.path)/vault")
        #expect(try code { _ = try home.sealedVault.openOrCreate(passphrase: unasked) } == .missing)
        #expect(rename("\(home.path)/vault.bak", "\(home.path)/vault") == 0)
        #expect(try home.sealedVault.openOrCreate(passphrase: unasked).contents == VaultContents())
    }

    @Test func passphraseVaultAsksOnce() throws {
        let file = home.sealedVault { _ throws(VaultError) in }
        try file.create(openedBy: .passphrase(Secret(utf8: "right"))).update(fill)
        #expect(!home.names.contains("vault.key"))
        var asked = 0
        let vault = try home.sealedVault.open {
            asked += 1
            return Secret(utf8: "right")
        }
        #expect(asked == 1)
        #expect(try vault.contents == filled())
        #expect(vault.key == .passphrase)

        let sealed = try home.bytes("vault")
        #expect(try code { _ = try home.sealedVault.open { Secret(utf8: "wrong") } } == .wrongPassphrase)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .passphraseNeeded)
        #expect(try code { _ = try home.sealedVault.open { throw VaultError(.cut, "standard input") } } == .cut)
        #expect(try home.bytes("vault") == sealed)
        try vault.update { $0.removeCredential(named: "enrollment") }
        #expect(asked == 1)
    }

    /// The command that restores the backup is shown only if there is one.
    @Test func hintsNameTheBackupOnlyIfThereIsOne() throws {
        func hint() throws -> String {
            let error = #expect(throws: VaultError.self) { try home.sealedVault.open { Secret(utf8: "wrong") } }
            return try #require(error?.hint)
        }
        let file = home.sealedVault { _ throws(VaultError) in }
        let vault = try file.create(openedBy: .passphrase(Secret(utf8: "right")))
        let restore = home.sealedVault.storage.restoreCommand
        #expect(!home.names.contains("vault.bak"))
        #expect(try hint() == "try again")
        try vault.update(fill)
        #expect(home.names.contains("vault.bak"))
        #expect(try hint().contains(restore))
        try home.put(Array("no vault".utf8), "vault")
        #expect(try hint().contains(restore))
        unlink("\(home.path)/vault.bak")
        #expect(try !hint().contains("mv "))
        unlink("\(home.path)/vault")
        try home.put(Array("no vault".utf8), "vault.bak")
        #expect(try code { try home.sealedVault.checkNotLost() } == .missing)
    }

    @Test func anEmptyPassphraseIsRefused() throws {
        #expect(
            try code { _ = try home.sealedVault.create(openedBy: .passphrase(Secret(utf8: ""))) } == .passphraseNeeded)
        #expect(!home.names.contains("vault"))
    }

    @Test func anotherKeyFileIsRefused() throws {
        try home.sealedVault.create(openedBy: .file).update(fill)
        let sealed = try home.bytes("vault")
        let key = try home.bytes("vault.key")
        try home.put(KeyFileText.encode([Randomness.secret(32)]).withBytes { Array($0) }, "vault.key")
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .wrongKey)
        unlink("\(home.path)/vault.key")
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .keyFileMissing)
        try home.put(Array("nonsense".utf8), "vault.key")
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .keyFileInvalid)
        try home.put([UInt8](repeating: 0x23, count: 4097), "vault.key")
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .tooLarge)
        #expect(try home.bytes("vault") == sealed)
        try home.put(key, "vault.key")
        #expect(try home.sealedVault.open(passphrase: unasked).contents == filled())
    }

    @Test func everyAlteredOrCutFileIsRefusedAndUntouched() throws {
        try home.sealedVault.create(openedBy: .file).update(fill)
        let whole = try home.bytes("vault")
        var broken: [[UInt8]] = whole.indices.map { index in
            var altered = whole
            altered[index] ^= 0x80
            return altered
        }
        broken += whole.indices.map { Array(whole.prefix($0)) }
        broken.append(whole + [0])
        for bytes in broken {
            try home.put(bytes, "vault")
            let refused = try code { _ = try home.sealedVault.openOrCreate(passphrase: unasked) }
            #expect(refused != nil)
            #expect(try home.bytes("vault") == bytes)
        }
        try home.put(whole, "vault")
        #expect(try home.sealedVault.open(passphrase: unasked).contents == filled())
    }

    @Test func aVaultHasAtMostSixteenMebibytes() throws {
        _ = try home.sealedVault.create(openedBy: .file)
        #expect(truncate("\(home.path)/vault", VaultLimits.fileBytes) == 0)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .altered)
        #expect(truncate("\(home.path)/vault", VaultLimits.fileBytes + 1) == 0)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .tooLarge)
    }

    @Test(arguments: ["vault", "vault.key"], [0o640, 0o604, 0o620, 0o602, 0o610, 0o601] as [mode_t])
    func anItemThatOthersCanAccessIsRefused(name: String, mode: mode_t) throws {
        _ = try home.sealedVault.create(openedBy: .file)
        chmod("\(home.path)/\(name)", mode)
        let error = #expect(throws: VaultError.self) { try home.sealedVault.open(passphrase: unasked) }
        #expect(error?.code == .permissions)
        #expect(error?.hint == "chmod 600 \(home.path)/\(name)")
    }

    @Test(.enabled(if: geteuid() == 0), arguments: ["vault", "vault.key"])
    func anItemOfAnotherUserIsRefused(name: String) throws {
        _ = try home.sealedVault.create(openedBy: .file)
        chown("\(home.path)/\(name)", 1, 1)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .permissions)
    }

    @Test(arguments: ["vault", "vault.key"])
    func aSymbolicLinkIsRefused(name: String) throws {
        _ = try home.sealedVault.create(openedBy: .file)
        #expect(rename("\(home.path)/\(name)", "\(home.path)/elsewhere") == 0)
        #expect(symlink("elsewhere", "\(home.path)/\(name)") == 0)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .permissions)
    }

    @Test func aFolderOrPipeIsNotAVault() throws {
        #expect(mkdir("\(home.path)/vault", 0o700) == 0)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .notAVault)
        rmdir("\(home.path)/vault")
        #expect(mkfifo("\(home.path)/vault", 0o600) == 0)
        #expect(try code { _ = try home.sealedVault.open(passphrase: unasked) } == .notAVault)
    }

    @Test func aHomeThatIsWritableForEveryoneIsRefused() throws {
        chmod(home.path, 0o707)
        #expect(try code { _ = try home.sealedVault.create(openedBy: .file) } == .permissions)
        #expect(home.names.isEmpty)
        chmod(home.path, 0o770)
        #expect(try code { _ = try home.sealedVault.create(openedBy: .file) } == nil)
    }

    @Test func aHomeThatIsAFileIsRefused() throws {
        try home.put([], "home")
        #expect(try code { _ = try SealedVault(home: "\(home.path)/home").create(openedBy: .file) } == .io(ENOTDIR))
    }

    @Test func statusNeedsNoKey() throws {
        try home.sealedVault.create(openedBy: .file).update(fill)
        let size = try home.bytes("vault").count
        let status = VaultStatus(
            location: "\(home.path)/vault", key: .file, sizeBytes: size, keyLocation: "\(home.path)/vault.key",
            hasKey: true, hasBackup: true)
        #expect(try SealedVault(home: home.path + "/").status() == status)
        unlink("\(home.path)/vault.key")
        #expect(try !home.sealedVault.status().hasKey)
        try home.put(Array("CSV1".utf8) + [0, 2], "vault")
        #expect(try code { _ = try home.sealedVault.status() } == .newerVersion)
    }

    @Test func everyWriteHasItsFingerprint() throws {
        let vault = try home.sealedVault.create(openedBy: .file)
        var seen = [try #require(try home.sealedVault.storage.version(of: .vault))]
        for _ in 0..<5 {
            try vault.update { try $0.setCredential(name: "a", user: "u", password: Secret(utf8: "p")) }
            let now = try #require(try home.sealedVault.storage.version(of: .vault))
            #expect(!seen.contains(now))
            seen.append(now)
            #expect(try home.sealedVault.storage.version(of: .vault) == now)
        }
    }

    @Test func noErrorSaysASecret() throws {
        let file = home.sealedVault { _ throws(VaultError) in }
        try file.create(openedBy: .file).update(fill)
        let whole = try home.bytes("vault")
        var texts: [String] = []
        func note<Value>(_ body: () throws -> Value) throws {
            do { _ = try body() } catch let error as VaultError {
                texts.append("\(error)|\(error.detail)|\(error.hint ?? "")|\(String(reflecting: error))")
            }
        }
        for length in [3, 5, 100, whole.count - 1] {
            try home.put(whole.prefix(length), "vault")
            try note { _ = try home.sealedVault.open(passphrase: unasked) }
        }
        try home.put(whole.dropLast() + [whole[whole.count - 1] ^ 1], "vault")
        try note { _ = try home.sealedVault.open(passphrase: unasked) }
        try home.put(whole, "vault")
        let vault = try home.sealedVault.open(passphrase: unasked)
        try note { try vault.update { try $0.setCredential(name: "", user: "u", password: Secret(utf8: "canary")) } }
        try note { try vault.update { try $0.setCredential(name: "a", user: "", password: Secret(utf8: "canary")) } }
        let key = try home.bytes("vault.key").filter { $0 != 0x0A }
        try home.put(key + Array("canary".utf8), "vault.key")
        try note { _ = try home.sealedVault.open(passphrase: unasked) }
        try home.put(KeyFileText.encode([Secret(repeatElement(0xCA, count: 32))]).withBytes { Array($0) }, "vault.key")
        try note { _ = try home.sealedVault.open(passphrase: unasked) }
        try home.put(whole, "vault")
        #expect(texts.count == 9)
        let digits = String(decoding: key.suffix(64), as: UTF8.self)
        for text in texts {
            #expect(!text.contains("canary-") && !text.contains("(canary") && !text.contains("caca"), "\(text)")
            #expect(!text.contains(digits) && !text.contains("canary"), "\(text)")
        }
        #expect(!"\(vault.contents)".contains("canary"))
        #expect(!String(reflecting: vault.contents).contains("canary"))
    }
}
