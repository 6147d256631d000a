// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization
import Testing

@testable import CountersignVault

/// The contract of a storage, and of a vault over any storage. The file system and a storage with row versions run the
/// same tests.
@Suite struct VaultStorageTests {
    enum Kind: CaseIterable, Sendable {
        case file
        case memory
    }

    /// A storage of its own for one test.
    private struct Place {
        let storage: any VaultStorage
        private let home: TemporaryHome?

        init(_ kind: Kind, patience: Duration = .seconds(120)) throws {
            switch kind {
            case .file:
                let home = try TemporaryHome()
                storage = VaultFolder(path: home.path, patience: patience)
                self.home = home
            case .memory:
                storage = MemoryStorage(patience: patience)
                home = nil
            }
        }

        var vault: SealedVault { SealedVault(storage: storage, passphraseCost: cheapest) }

        /// A writer that holds no lock, and is interrupted before each of its writes.
        func unlockedVault(before: @escaping @Sendable () throws -> Void = {}) -> SealedVault {
            SealedVault(storage: UnlockedStorage(base: storage, before: before), passphraseCost: cheapest)
        }
    }

    private static func add(_ name: String, to vault: OpenVault) throws {
        try vault.update { try $0.setCredential(name: name, user: "u", password: Secret(utf8: "p")) }
    }

    // MARK: The storage

    @Test(arguments: Kind.allCases)
    func anItemIsReadWithTheVersionOfItsLastWrite(_ kind: Kind) throws {
        let place = try Place(kind)
        for item in VaultItem.allCases {
            #expect(try place.storage.version(of: item) == nil)
            #expect(try place.storage.read(item, upTo: 10)?.bytes == nil)
            try place.storage.replace(item, with: Array("first".utf8))
            let first = try #require(try place.storage.read(item, upTo: 10))
            #expect(first.bytes == Array("first".utf8))
            #expect(try place.storage.version(of: item) == first.version)
            try place.storage.replace(item, with: Array("other".utf8))
            #expect(try place.storage.version(of: item) != first.version)
        }
    }

    @Test(arguments: Kind.allCases)
    func everyWriteGivesAnotherVersionAlsoOfTheSameBytes(_ kind: Kind) throws {
        let place = try Place(kind)
        var seen: Set<VaultItemVersion> = []
        for _ in 0..<20 {
            try place.storage.replace(.vault, with: [1, 2, 3])
            seen.insert(try #require(try place.storage.version(of: .vault)))
        }
        #expect(seen.count == 20)
    }

    @Test(arguments: Kind.allCases)
    func aConditionThatDoesNotHoldLeavesTheItem(_ kind: Kind) throws {
        let place = try Place(kind)
        let storage = place.storage
        try storage.replace(.vault, with: [1], if: .absent)
        let first = try #require(try storage.version(of: .vault))
        #expect(try code { try storage.replace(.vault, with: [2], if: .absent) } == .changed)
        try storage.replace(.vault, with: [3], if: .unchanged(since: first))
        #expect(try code { try storage.replace(.vault, with: [4], if: .unchanged(since: first)) } == .changed)
        #expect(try code { try storage.replace(.key, with: [5], if: .unchanged(since: first)) } == .changed)
        #expect(try storage.read(.vault, upTo: 1)?.bytes == [3])
        #expect(try storage.version(of: .key) == nil)
    }

    @Test(arguments: Kind.allCases)
    func anItemCanBeRemovedTwice(_ kind: Kind) throws {
        let place = try Place(kind)
        try place.storage.replace(.backup, with: [1])
        try place.storage.remove(.backup)
        try place.storage.remove(.backup)
        #expect(try place.storage.version(of: .backup) == nil)
    }

    @Test(arguments: Kind.allCases)
    func anItemOverTheLimitIsNotRead(_ kind: Kind) throws {
        let place = try Place(kind)
        try place.storage.replace(.key, with: [1, 2, 3])
        #expect(try place.storage.read(.key, upTo: 3)?.bytes.count == 3)
        #expect(try code { try place.storage.read(.key, upTo: 2) } == .tooLarge)
    }

    @Test(arguments: Kind.allCases)
    func theLockExcludesOtherWritersUntilItIsReleased(_ kind: Kind) throws {
        let place = try Place(kind, patience: .milliseconds(30))
        let lock = try place.storage.lockForWriting()
        #expect(try code { try place.storage.lockForWriting() } == .locked)
        lock.release()
        try place.storage.lockForWriting().release()
    }

    // MARK: The vault

    @Test(arguments: Kind.allCases)
    func aVaultIsCreatedFilledAndOpened(_ kind: Kind) throws {
        let place = try Place(kind)
        #expect(try code { try place.vault.open(passphrase: unasked) } == .missing)
        let vault = try place.vault.openOrCreate(passphrase: unasked)
        #expect(try place.storage.version(of: .backup) == nil)
        try vault.update(fill)
        #expect(try place.vault.open(passphrase: unasked).contents == filled())
        #expect(try place.storage.version(of: .backup) != nil)
        #expect(try code { try place.vault.create(openedBy: .file) } == .exists)

        let status = try place.vault.status()
        #expect(status.key == .file && status.hasKey && status.hasBackup)
        #expect(status.sizeBytes == (try place.storage.read(.vault, upTo: VaultLimits.fileBytes)?.bytes.count))
    }

    @Test(arguments: Kind.allCases)
    func rekeyingReplacesTheKeyAndRemovesTheBackup(_ kind: Kind) throws {
        let place = try Place(kind)
        let vault = try place.vault.create(openedBy: .file)
        try vault.update(fill)
        let key = try #require(try place.storage.version(of: .key))

        try vault.rekey(to: .file)
        #expect(try place.storage.version(of: .key) != key)
        #expect(try place.vault.storedKeys()?.count == 1)
        #expect(try place.storage.version(of: .backup) == nil)

        try vault.rekey(to: .passphrase(Secret(utf8: "new")))
        #expect(try place.storage.version(of: .key) == nil)
        #expect(try place.vault.open { Secret(utf8: "new") }.contents.credentials == vault.contents.credentials)
        #expect(try code { try place.vault.open { Secret(utf8: "old") } } == .wrongPassphrase)
    }

    @Test(arguments: Kind.allCases)
    func aLostVaultIsRestoredFromTheBackupAndNotReplacedByAnEmptyOne(_ kind: Kind) throws {
        let place = try Place(kind)
        try place.vault.create(openedBy: .file).update(fill)
        try place.storage.remove(.vault)
        let error = #expect(throws: VaultError.self) { try place.vault.openOrCreate(passphrase: unasked) }
        #expect(error?.code == .missing)
        #expect(error?.hint?.contains(place.storage.restoreCommand) == true)
        let backup = try #require(try place.storage.read(.backup, upTo: VaultLimits.fileBytes)).bytes
        try place.storage.replace(.vault, with: backup, if: .absent)
        #expect(try place.vault.open(passphrase: unasked).contents == VaultContents())
    }

    @Test(arguments: Kind.allCases)
    func anOlderVaultIsReportedAndNotWrittenOver(_ kind: Kind) throws {
        let place = try Place(kind)
        let vault = try place.vault.create(openedBy: .file)
        let older = try #require(try place.storage.read(.vault, upTo: VaultLimits.fileBytes)).bytes
        try Self.add("later", to: vault)
        let known = vault.contents
        try place.storage.replace(.vault, with: older)
        #expect(try code { try vault.reload() } == .rolledBack)
        #expect(try code { try Self.add("more", to: vault) } == .rolledBack)
        #expect(try code { try vault.rekey(to: .file) } == .rolledBack)
        #expect(vault.contents == known)
        #expect(try place.storage.read(.vault, upTo: VaultLimits.fileBytes)?.bytes == older)
    }

    // MARK: Two writers

    @Test(arguments: Kind.allCases)
    func writersThatRaceLoseNothing(_ kind: Kind) async throws {
        let place = try Place(kind)
        let vault = try place.vault.create(openedBy: .file)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<2 {
                let own = try place.vault.open(passphrase: unasked)
                group.addTask {
                    for index in 0..<25 { try Self.add("w\(writer).\(index)", to: own) }
                }
            }
            try await group.waitForAll()
        }
        try vault.reload()
        #expect(vault.contents.credentials.count == 50)
        #expect(vault.contents.generation == 51)
    }

    /// Runs `body` once, however often it is called.
    private static func once(_ body: @escaping @Sendable () throws -> Void) -> @Sendable () throws -> Void {
        let isDone = Atomic(false)
        return { if !isDone.exchange(true, ordering: .relaxed) { try body() } }
    }

    @Test(arguments: Kind.allCases)
    func aLostCompareAndSwapIsRepeatedWithTheNewerContents(_ kind: Kind) throws {
        let place = try Place(kind)
        _ = try place.vault.create(openedBy: .file)
        let other = try place.unlockedVault().open(passphrase: unasked)
        let vault = try place.unlockedVault(before: Self.once { try Self.add("theirs", to: other) })
            .open(passphrase: unasked)
        var calls = 0
        let names = try vault.update { contents in
            calls += 1
            try contents.setCredential(name: "mine", user: "u", password: Secret(utf8: "p"))
            return contents.credentials.keys.sorted()
        }
        #expect(calls == 2)
        #expect(names == ["mine", "theirs"])
        #expect(try place.vault.open(passphrase: unasked).contents == vault.contents)
    }

    @Test(arguments: Kind.allCases)
    func rekeyingThatLosesARaceKeepsWhatTheOtherWrote(_ kind: Kind) throws {
        let place = try Place(kind)
        _ = try place.vault.create(openedBy: .file)
        let other = try place.unlockedVault().open(passphrase: unasked)
        let vault = try place.unlockedVault(before: Self.once { try Self.add("theirs", to: other) })
            .open(passphrase: unasked)
        try vault.rekey(to: .file)
        #expect(try place.vault.storedKeys()?.count == 1)
        #expect(try place.vault.open(passphrase: unasked).contents.credentials.keys.sorted() == ["theirs"])
    }

    @Test(arguments: Kind.allCases)
    func aWriterThatLosesEveryRaceGivesUp(_ kind: Kind) throws {
        let place = try Place(kind)
        _ = try place.vault.create(openedBy: .file)
        let other = try place.unlockedVault().open(passphrase: unasked)
        let vault = try place.unlockedVault(before: { try Self.add("theirs", to: other) }).open(passphrase: unasked)
        #expect(try code { try Self.add("mine", to: vault) } == .changed)
        #expect(try place.vault.open(passphrase: unasked).contents.credentials.keys.sorted() == ["theirs"])
    }

    @Test(arguments: Kind.allCases)
    func ofTwoWritersThatCreateAVaultTheSecondFails(_ kind: Kind) throws {
        let place = try Place(kind)
        let first = Mutex<OpenVault?>(nil)
        let second = place.unlockedVault(before: {
            let vault = try place.unlockedVault().create(openedBy: .file)
            first.withLock { $0 = vault }
        })
        #expect(try code { try second.create(openedBy: .file) } == .exists)
        #expect(try place.vault.open(passphrase: unasked).contents == first.withLock { $0 }?.contents)
    }

    // MARK: Watching

    @Test(arguments: Kind.allCases)
    func aWatchReportsEachChangeOnce(_ kind: Kind) throws {
        let place = try Place(kind)
        var watch = VaultWatch(place.storage)
        func hasChanged() -> Bool { watch.takeChange() }
        #expect(!hasChanged())
        let vault = try place.vault.create(openedBy: .file)
        #expect(hasChanged())
        #expect(!hasChanged())

        try Self.add("a", to: vault)
        try Self.add("b", to: vault)
        #expect(hasChanged())
        #expect(!hasChanged())

        try vault.update { _ in }
        #expect(!hasChanged())
        try place.storage.replace(.key, with: [1])
        #expect(hasChanged())
        try place.storage.remove(.vault)
        #expect(hasChanged())
        #expect(!hasChanged())
    }
}
