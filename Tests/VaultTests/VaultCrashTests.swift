// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Synchronization
import Testing

@testable import CountersignVault

/// Kills the process, or fails, at each file-system operation in turn.
@Suite struct VaultCrashTests {
    /// An operation on a vault that contains `filled()`.
    enum Work: String, CaseIterable, Codable, Sendable {
        case update
        case rekeyToFile
        case rekeyToPassphrase

        func run(_ vault: OpenVault) throws {
            switch self {
            case .update: try vault.update { $0.removeCredential(named: "enrollment") }
            case .rekeyToFile: try vault.rekey(to: .file)
            case .rekeyToPassphrase: try vault.rekey(to: .passphrase(Secret(utf8: "new")))
            }
        }
    }

    /// Counts steps and is due at one of them.
    final class Countdown: Sendable {
        private let count = Atomic<Int>(0)
        private let last: Int

        init(at last: Int) { self.last = last }

        var steps: Int { count.load(ordering: .relaxed) }

        func isDue() -> Bool { count.add(1, ordering: .relaxed).newValue == last }
    }

    private static func prepared() throws -> TemporaryHome {
        let home = try TemporaryHome()
        try home.sealedVault.create(openedBy: .file).update(fill)
        return home
    }

    /// Opens the vault that a killed or failed process left, with either key, and changes it.
    private func checkWhole(_ home: TemporaryHome, _ comment: Comment) throws {
        let vault = try home.sealedVault { _ throws(VaultError) in }.open { Secret(utf8: "new") }
        let contents = vault.contents
        #expect(contents.identityKeys == (try filled().identityKeys), comment)
        #expect(contents.interception == (try filled().interception), comment)
        #expect([0, 1].contains(contents.credentials.count), comment)
        for name in home.names { #expect(try home.mode(name) == 0o600, comment) }
        if home.names.contains("vault.bak") {
            #expect(throws: Never.self, comment) { try VaultHeader(of: home.bytes("vault.bak")) }
        }

        try vault.update { try $0.setCredential(name: "after", user: "u", password: Secret(utf8: "p")) }
        #expect(try home.sealedVault.open { Secret(utf8: "new") }.contents.credentials["after"] != nil, comment)
        #expect(!home.names.contains { $0.hasSuffix(".new") }, comment)
        #expect((vault.key == .file) == home.names.contains("vault.key"), comment)
        if vault.key == .file { #expect(try home.sealedVault.storedKeys()?.count == 1, comment) }
    }

    private func steps(of work: Work) throws -> Int {
        let home = try Self.prepared()
        let countdown = Countdown(at: 0)
        let file = home.sealedVault { _ throws(VaultError) in _ = countdown.isDue() }
        try work.run(try file.open(passphrase: unasked))
        return countdown.steps
    }

    @Test(arguments: Work.allCases)
    func aProcessKilledAtAnyStepLeavesAValidVault(work: Work) async throws {
        let steps = try steps(of: work)
        #expect(steps >= 8)
        for step in 1...steps {
            let home = try Self.prepared()
            let (path, name) = (home.path, work.rawValue)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, name = name as String, step = step as Int] in
                let countdown = Countdown(at: step)
                let folder = VaultFolder(path: path) { _ throws(VaultError) in
                    if countdown.isDue() { kill(getpid(), SIGKILL) }
                }
                let vault = try SealedVault(storage: folder, passphraseCost: cheapest).open(passphrase: unasked)
                try #require(Work(rawValue: name)).run(vault)
            }
            try checkWhole(home, "\(work) killed before step \(step) of \(steps)")
        }
    }

    @Test(arguments: Work.allCases)
    func aFailureAtAnyStepLeavesAValidVault(work: Work) throws {
        let steps = try steps(of: work)
        for step in 1...steps {
            let home = try Self.prepared()
            let countdown = Countdown(at: step)
            let failed = Mutex<VaultFolder.Step?>(nil)
            let file = home.sealedVault { now throws(VaultError) in
                guard countdown.isDue() else { return }
                failed.withLock { $0 = now }
                throw VaultError(.io(ENOSPC), "no space left on device")
            }
            let before = try home.bytes("vault")
            #expect(try code { try work.run(try file.open(passphrase: unasked)) } == .io(ENOSPC))
            let failedStep = failed.withLock { $0 }
            switch failedStep {
            case .create(let name), .write(let name), .sync(let name):
                #expect(!home.names.contains(name))
                if name == "vault.new" { #expect(try home.bytes("vault") == before) }
            case .rename("vault"):
                #expect(!home.names.contains("vault.new"))
                #expect(try home.bytes("vault") == before)
            default: break
            }
            try checkWhole(home, "\(work) failed at \(String(describing: failedStep))")
        }
    }

    @Test func creatingAVaultMayBeInterruptedAnywhere() async throws {
        let counted = Countdown(at: 0)
        let first = try TemporaryHome()
        _ = try first.sealedVault { _ throws(VaultError) in _ = counted.isDue() }.create(openedBy: .file)
        #expect(counted.steps == 11)
        for step in 1...counted.steps {
            let home = try TemporaryHome()
            let path = home.path
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, step = step as Int] in
                let countdown = Countdown(at: step)
                let folder = VaultFolder(path: path) { _ throws(VaultError) in
                    if countdown.isDue() { kill(getpid(), SIGKILL) }
                }
                _ = try SealedVault(storage: folder, passphraseCost: cheapest).create(openedBy: .file)
            }
            let vault = try home.sealedVault.openOrCreate(passphrase: unasked)
            try vault.update(fill)
            #expect(try home.sealedVault.open(passphrase: unasked).contents == filled(), "killed before step \(step)")
        }
    }

    @Test func aShortWriteLeavesTheOldVault() async throws {
        let home = try Self.prepared()
        let before = try home.bytes("vault")
        let path = home.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            let vault = try SealedVault(home: path).open(passphrase: unasked)
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: 1000, rlim_max: 1000)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let refused = try code {
                try vault.update {
                    try $0.setCredential(name: "b", user: "u", password: Secret(count: 4000) { _ in })
                }
            }
            #expect(refused == .io(EFBIG))
        }
        #expect(try home.bytes("vault") == before)
        try checkWhole(home, "cut short")
    }
}
