// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Synchronization
import Testing

@testable import CountersignVault

@Suite struct OpenVaultTests {
    private let home: TemporaryHome
    private let file: SealedVault
    private let vault: OpenVault

    init() throws {
        home = try TemporaryHome()
        file = home.sealedVault { _ throws(VaultError) in }
        vault = try file.create(openedBy: .file)
        try vault.update(fill)
    }

    private func set(_ name: String) throws {
        try vault.update { try $0.setCredential(name: name, user: "u", password: Secret(utf8: "p")) }
    }

    @Test func readingAgainKeepsOneCopyOfEachSecret() throws {
        try set("a")
        let before = try #require(vault.contents.credentials["a"]?.password)
        try file.open(passphrase: unasked).update {
            try $0.setCredential(name: "b", user: "u", password: Secret(utf8: "p"))
        }
        #expect(try vault.reload())
        #expect(vault.contents.credentials["a"]?.password === before)
        #expect(vault.contents.credentials["b"] != nil)
    }

    // MARK: Updating

    @Test func anUpdateIsWrittenAndTheVersionBeforeKept() throws {
        let before = try home.bytes("vault")
        let count = try vault.update { contents in
            contents.removeIdentityKey(named: "laptop")
            return contents.recordCount
        }
        #expect(count == 2)
        #expect(try file.open(passphrase: unasked).contents == vault.contents)
        #expect(vault.contents.recordCount == 2)
        #expect(try home.bytes("vault.bak") == before)
        #expect(home.names == ["vault", "vault.bak", "vault.key", "vault.lock"])
        for name in home.names { #expect(try home.mode(name) == 0o600, "\(name)") }
    }

    @Test func theBackupOpens() throws {
        try set("later")
        try home.put(try home.bytes("vault.bak"), "vault")
        #expect(try file.open(passphrase: unasked).contents == filled())
    }

    @Test func noNonceComesTwice() throws {
        var seen: Set<[UInt8]> = []
        for _ in 0..<20 {
            try set("a")
            seen.insert(try VaultHeader(of: home.bytes("vault")).payloadNonce)
        }
        #expect(seen.count == 20)
    }

    @Test func nothingIsWrittenForNoChange() throws {
        let fingerprint = try file.storage.version(of: .vault)
        try vault.update { _ in }
        try vault.update { $0.removeCredential(named: "nobody") }
        #expect(try file.storage.version(of: .vault) == fingerprint)
    }

    @Test func aChangeThatThrowsIsDiscarded() throws {
        let fingerprint = try file.storage.version(of: .vault)
        #expect(throws: NoPassphrase.self) {
            try vault.update { contents in
                contents.removeCredential(named: "enrollment")
                throw NoPassphrase()
            }
        }
        #expect(try file.storage.version(of: .vault) == fingerprint)
        #expect(try vault.contents == filled())
    }

    @Test func anotherWritersChangeIsKept() throws {
        let other = try file.open(passphrase: unasked)
        try set("mine")
        try other.update { try $0.setCredential(name: "theirs", user: "u", password: Secret(utf8: "p")) }
        #expect(other.contents.credentials.keys.sorted() == ["enrollment", "mine", "theirs"])
        #expect(vault.contents.credentials.keys.sorted() == ["enrollment", "mine"])
        #expect(try vault.reload())
        #expect(vault.contents == other.contents)
        #expect(try !vault.reload())
    }

    @Test func anOlderVaultIsReported() throws {
        let older = try home.bytes("vault")
        try set("later")
        let known = vault.contents
        try home.put(older, "vault")
        #expect(try code { try vault.reload() } == .rolledBack)
        #expect(try code { try set("more") } == .rolledBack)
        #expect(try code { try vault.rekey(to: .file) } == .rolledBack)
        #expect(vault.contents == known)
        #expect(try home.bytes("vault") == older)
        #expect(try file.open(passphrase: unasked).contents == filled())
    }

    @Test func anAlteredVaultIsNotWrittenOver() throws {
        var bytes = try home.bytes("vault")
        bytes[bytes.count - 1] ^= 1
        try home.put(bytes, "vault")
        #expect(try code { try set("a") } == .altered)
        #expect(try code { try vault.rekey(to: .file) } == .altered)
        #expect(try home.bytes("vault") == bytes)
    }

    @Test func aVaultThatWasRemovedIsNotRecreated() throws {
        unlink("\(home.path)/vault")
        #expect(try code { try set("a") } == .missing)
        #expect(!home.names.contains("vault"))
    }

    @Test func aWriterGivesUpWaitingForTheLock() throws {
        let lock = try file.storage.lockForWriting()
        let hasty = VaultFolder(path: home.path, patience: .milliseconds(30))
        #expect(try code { _ = try hasty.lockForWriting() } == .locked)
        lock.release()
        try VaultFolder(path: home.path, patience: .zero).lockForWriting().release()
    }

    @Test func aWriterMayGiveUpSooner() throws {
        let patient = VaultFolder(path: home.path, patience: .seconds(600))
        let lock = try patient.lockForWriting()
        #expect(try code { _ = try patient.lockForWriting(patience: .zero) } == .locked)
        #expect(try code { try vault.update(patience: .zero) { $0.touch() } } == .locked)
        lock.release()
    }

    @Test func aChangeMayLeaveTheBackup() throws {
        try set("one")
        let backup = try home.bytes("vault.bak")
        try vault.update(keepsBackup: false) { $0.touch() }
        #expect(try home.bytes("vault.bak") == backup)
        try set("two")
        #expect(try home.bytes("vault.bak") != backup)
    }

    // MARK: At once

    @Test func threadsLoseNothing() async throws {
        let file = TemporaryHome.sharedVault(home.path)
        let vault = try file.open(passphrase: unasked)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let own = writer < 2 ? vault : try file.open(passphrase: unasked)
                    for index in 0..<50 {
                        try own.update {
                            try $0.setCredential(name: "w\(writer).\(index)", user: "u", password: Secret(utf8: "p"))
                        }
                    }
                }
            }
            group.addTask {
                for _ in 0..<200 { try vault.reload() }
            }
            try await group.waitForAll()
        }
        try vault.reload()
        #expect(vault.contents.credentials.count == 201)
        #expect(Set(vault.contents.credentials.values.map(\.generation)).count == 201)
        #expect(try file.open(passphrase: unasked).contents == vault.contents)
    }

    @Test func processesLoseNothing() async throws {
        let path = home.path
        async let one: Void = write50(as: "one", home: path)
        async let two: Void = write50(as: "two", home: path)
        async let three: Void = write50(as: "three", home: path)
        _ = await (one, two, three)
        try vault.reload()
        #expect(vault.contents.credentials.count == 151)
        #expect(vault.contents.generation == 4 + 150)
    }

    private func write50(as writer: String, home: String) async {
        await #expect(processExitsWith: .success) { [writer = writer as String, home = home as String] in
            let vault = try TemporaryHome.sharedVault(home).open(passphrase: unasked)
            for index in 0..<50 {
                try vault.update {
                    try $0.setCredential(name: "\(writer).\(index)", user: "u", password: Secret(utf8: "p"))
                }
            }
        }
    }

    // MARK: Rekeying

    @Test func rekeyingToAPassphraseAndBackKeepsTheContents() throws {
        let records = vault.contents.credentials
        let oldKey = try home.bytes("vault.key")
        let oldVault = try home.bytes("vault")

        try vault.rekey(to: .passphrase(Secret(utf8: "first")))
        #expect(vault.key == .passphrase)
        #expect(home.names == ["vault", "vault.lock"])
        #expect(try file.open { Secret(utf8: "first") }.contents == vault.contents)
        try home.put(oldKey, "vault.key")
        #expect(try code { _ = try file.open(passphrase: unasked) } == .passphraseNeeded)

        try vault.rekey(to: .passphrase(Secret(utf8: "second")))
        #expect(!home.names.contains("vault.key"))
        #expect(try code { _ = try file.open { Secret(utf8: "first") } } == .wrongPassphrase)
        #expect(try file.open { Secret(utf8: "second") }.contents.credentials == records)

        try vault.rekey(to: .file)
        #expect(vault.key == .file)
        #expect(home.names == ["vault", "vault.key", "vault.lock"])
        #expect(try home.mode("vault.key") == 0o600)
        let newKey = try home.bytes("vault.key")
        #expect(newKey != oldKey)
        #expect(try file.open(passphrase: unasked).contents == vault.contents)
        #expect(vault.contents.credentials == records)

        try home.put(oldKey, "vault.key")
        #expect(try code { _ = try file.open(passphrase: unasked) } == .wrongKey)
        try home.put(newKey, "vault.key")
        try home.put(oldVault, "vault")
        #expect(try code { _ = try file.open(passphrase: unasked) } == .wrongKey)
    }

    /// Rejected passwords are identified by tags with this key.
    @Test func rekeyingKeepsTheKeyOfTags() throws {
        let key = vault.tagKey
        #expect(vault.contents.tagKey == nil)
        for new in [NewVaultKey.file, .passphrase(Secret(utf8: "p")), .file] {
            try vault.rekey(to: new)
            #expect(vault.tagKey == key)
            #expect(try file.open { () throws in Secret(utf8: "p") }.tagKey == key)
        }
        try vault.update { _ = $0.removeCredential(named: "enrollment") }
        #expect(try file.open(passphrase: unasked).tagKey == key)
    }

    @Test func rekeyingChangesTheDataKey() throws {
        func dataKey() throws -> Secret { try file.fittingKey(of: VaultHeader(of: home.bytes("vault"))).dataKey }
        let old = try dataKey()
        try vault.rekey(to: .file)
        #expect(try dataKey() != old)
        try set("a")
        #expect(try file.open(passphrase: unasked).contents == vault.contents)
    }

    @Test func anotherProcessFollowsAKeyFileAndAsksForAPassphrase() throws {
        let other = try file.open(passphrase: unasked)
        try vault.rekey(to: .file)
        #expect(try other.reload())
        try other.update { $0.removeCredential(named: "enrollment") }
        try vault.rekey(to: .passphrase(Secret(utf8: "p")))
        #expect(vault.contents.credentials.isEmpty)
        #expect(try code { try other.reload() } == .passphraseNeeded)
        #expect(try code { try other.update { $0.removeIdentityKey(named: "laptop") } } == .passphraseNeeded)
    }

    @Test func readersMayReadWhileTheKeyIsChanged() async throws {
        let (vault, file) = (vault, file)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for _ in 0..<30 { try vault.rekey(to: .file) }
            }
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<300 {
                        let contents = try file.open(passphrase: unasked).contents
                        #expect(contents.recordCount == (contents.tagKey == nil ? 3 : 4))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Does something once, before the key file is read.
    private func vault(beforeReadingTheKey body: @escaping @Sendable () throws -> Void) -> SealedVault {
        let countdown = VaultCrashTests.Countdown(at: 1)
        return home.sealedVault { step throws(VaultError) in
            guard step == .read("vault.key"), countdown.isDue() else { return }
            do { try body() } catch { throw error as? VaultError ?? VaultError(.missing, "\(error)") }
        }
    }

    @Test func aReaderBetweenTheVaultAndItsNewKeyReadsAgain() throws {
        let vault = vault
        let reader = self.vault(beforeReadingTheKey: { try vault.rekey(to: .file) })
        #expect(try reader.open(passphrase: unasked).contents == vault.contents)
        let later = self.vault(beforeReadingTheKey: { try vault.rekey(to: .passphrase(Secret(utf8: "new"))) })
        #expect(try later.open { Secret(utf8: "new") }.contents == vault.contents)
    }

    @Test func aSlowReaderDoesNotBringBackOldContents() throws {
        let shared = Mutex<OpenVault?>(nil)
        let slow = self.vault(beforeReadingTheKey: {
            try shared.withLock { $0 }?.update { $0.removeIdentityKey(named: "laptop") }
        })
        let reader = OpenVault(vault: slow, state: try file.snapshot(passphrase: unasked).snapshot)
        shared.withLock { $0 = reader }
        try vault.rekey(to: .file)
        try reader.reload()
        #expect(reader.contents.identityKeys.isEmpty)
        #expect(try reader.contents == file.open(passphrase: unasked).contents)
    }

    @Test func anEmptyPassphraseIsRefused() throws {
        #expect(try code { try vault.rekey(to: .passphrase(Secret(utf8: ""))) } == .passphraseNeeded)
        #expect(try file.open(passphrase: unasked).contents == vault.contents)
    }
}
