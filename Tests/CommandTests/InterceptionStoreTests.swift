// SPDX-License-Identifier: Apache-2.0

import Certificates
import Foundation
import TestOrigin
import Testing
import Vault

@testable import Countersign

struct InterceptionStoreTests {
    private let folder: TemporaryFolder
    private let home: Home
    private let vault: OpenVault
    private let store: InterceptionStore
    private static let start: Int64 = 1_800_000_000
    private static let day: Int64 = 86_400
    private static let hosts = ["git.corp.example", "*.wiki.corp.example", "127.0.0.1"]

    init() throws {
        folder = try TemporaryFolder("interception")
        home = Home(path: folder.file("home"))
        vault = try VaultFile(home: home.path).create(openedBy: .file)
        store = InterceptionStore(home: home)
    }

    private func authority(day: Int64, hosts: [String] = Self.hosts) throws -> InterceptionStore.Kept {
        try store.authority(for: hosts, in: vault, at: Self.start + day * Self.day)
    }

    @Test
    func theSameAuthorityServesUntilTenDaysBeforeItsEnd() throws {
        let first = try authority(day: 0)
        #expect(first.hasNewRoot)
        // Of 30 days one is past at the start: on the 18th day 11 are left, on the 19th less than 10 days and a second.
        for day: Int64 in [0, 1, 18] {
            let later = try authority(day: day)
            #expect(later.authority.issuing == first.authority.issuing, "day \(day)")
            #expect(!later.hasNewRoot)
        }
        let renewed = try authority(day: 19)
        #expect(renewed.authority.issuing != first.authority.issuing)
        #expect(renewed.authority.root == first.authority.root)
        #expect(!renewed.hasNewRoot)
    }

    @Test
    func aRootIsReplacedTenDaysBeforeItsEnd() throws {
        let first = try authority(day: 0)
        #expect(try authority(day: 718).authority.root == first.authority.root)
        let last = try authority(day: 719)
        #expect(last.authority.root != first.authority.root)
        #expect(last.hasNewRoot)
        #expect(try store.root() == last.authority.root)
    }

    @Test(arguments: [
        ["git.corp.example"], ["git.corp.example", "*.wiki.corp.example", "127.0.0.1", "::1"], [],
    ])
    func anotherListMakesAnotherIssuingCertificate(_ hosts: [String]) throws {
        let first = try authority(day: 0)
        let second = try authority(day: 0, hosts: hosts)
        #expect(second.authority.issuing != first.authority.issuing)
        #expect(second.authority.root == first.authority.root)
        #expect(second.authority.permits("git.corp.example") == hosts.contains("git.corp.example"))
    }

    @Test
    func aSecondProcessFindsWhatTheFirstHasMade() throws {
        let other = try VaultFile(home: home.path).open { throw CancellationError() }
        let first = try authority(day: 0)
        let second = try InterceptionStore(home: home).authority(for: Self.hosts, in: other, at: Self.start)
        #expect(second.authority.root == first.authority.root)
        #expect(second.authority.issuing == first.authority.issuing)
        #expect(!second.hasNewRoot)
    }

    /// A process that was stopped between writing the certificates and the vault.
    @Test
    func certificatesWithoutTheirKeysAreMadeAgain() throws {
        let first = try authority(day: 0)
        try vault.update { try $0.setInterception(nil) }
        let second = try authority(day: 0)
        #expect(second.hasNewRoot)
        #expect(second.authority.root != first.authority.root)
        #expect(try authority(day: 0).authority.root == second.authority.root)
    }

    // MARK: A new root

    @Test
    func aRotationLeavesNothingOfTheOldAuthority() throws {
        let first = try authority(day: 0)
        let clock = ContinuousClock()
        let begun = clock.now
        let second = try store.rotate(for: Self.hosts, in: vault, at: Self.start)
        #expect(clock.now - begun < .seconds(1))
        #expect(second.root != first.authority.root && second.issuing != first.authority.issuing)
        #expect(second.serves(Self.hosts, at: Self.start))
        let kept = try authority(day: 0)
        #expect(kept.authority.root == second.root && kept.authority.issuing == second.issuing && !kept.hasNewRoot)
        #expect(try home.files(in: Home.interceptionFolder, suffix: "").count == 2)
    }

    private var next: String { "home/Certs/interception/root.pem.next" }

    /// A process that was stopped after it had written the certificate, and before the vault.
    @Test
    func aRotationThatDidNotReachTheVaultDidNotHappen() throws {
        let first = try authority(day: 0)
        let stranger = try InterceptionAuthority.create(at: Self.start).root
        try folder.write(next, stranger.pem)
        #expect(try authority(day: 0).authority.root == first.authority.root)
        // Whoever writes next clears it away.
        #expect(try authority(day: 0, hosts: ["other.example"]).authority.root == first.authority.root)
        #expect(!FileManager.default.fileExists(atPath: folder.file(next)))
    }

    /// A process that was stopped when the vault had the new keys and `root.pem` was still the old one.
    @Test(arguments: [true, false])
    func aRotationThatReachedTheVaultIsFinishedByTheNext(_ hadRoot: Bool) throws {
        let first = try authority(day: 0)
        let (old, oldIssuing) = (first.authority.root.pem, first.authority.issuing.pem)
        let second = try store.rotate(for: Self.hosts, in: vault, at: Self.start)
        try folder.write(next, second.root.pem)
        if hadRoot {
            try folder.write("home/Certs/interception/root.pem", old)
            try folder.write("home/Certs/interception/issuing.pem", oldIssuing)
        } else {
            try home.rootCertificate.remove()
            try home.issuingCertificate.remove()
        }
        let other = InterceptionStore(home: home)
        let third = try other.authority(
            for: Self.hosts, in: VaultFile(home: home.path).open { throw CancellationError() }, at: Self.start)
        #expect(third.authority.root == second.root)
        #expect(third.authority.serves(Self.hosts, at: Self.start))
        #expect(try store.root() == second.root)
        #expect(!FileManager.default.fileExists(atPath: folder.file(next)))
    }

    @Test
    func twoRotationsAtOnceLeaveOneWholeAuthority() async throws {
        _ = try authority(day: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let own = try VaultFile(home: home.path).open { throw CancellationError() }
                    _ = try InterceptionStore(home: home).rotate(for: Self.hosts, in: own, at: Self.start)
                }
            }
            try await group.waitForAll()
        }
        try vault.reload()
        let root = try store.root()
        let kept = try authority(day: 0)
        #expect(kept.authority.root == root && !kept.hasNewRoot)
    }
}
