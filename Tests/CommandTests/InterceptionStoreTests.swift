// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import CountersignCertificates

@Suite(.waiting) struct InterceptionStoreTests {
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
        vault = try SealedVault(home: home.path).create(openedBy: .file)
        store = InterceptionStore(home: home)
    }

    private func authority(day: Int64, hosts: [String] = Self.hosts) throws -> InterceptionStore.Loaded {
        try store.authority(for: hosts, in: vault, at: Self.start + day * Self.day)
    }

    @Test
    func issuingCertificateIsReplacedTenDaysBeforeItExpires() throws {
        let first = try authority(day: 0)
        #expect(first.hasNewRoot)
        // One of the 30 days has passed at the start: on day 18, 11 days remain; on day 19, less than 10 days and a
        // second.
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
    func rootIsReplacedTenDaysBeforeItExpires() throws {
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
    func changedListReissuesTheIssuingCertificate(_ hosts: [String]) throws {
        let first = try authority(day: 0)
        let second = try authority(day: 0, hosts: hosts)
        #expect(second.authority.issuing != first.authority.issuing)
        #expect(second.authority.root == first.authority.root)
        #expect(second.authority.permits("git.corp.example") == hosts.contains("git.corp.example"))
    }

    @Test
    func secondProcessLoadsTheCAOfTheFirst() throws {
        let other = try SealedVault(home: home.path).open { throw CancellationError() }
        let first = try authority(day: 0)
        let second = try InterceptionStore(home: home).authority(for: Self.hosts, in: other, at: Self.start)
        #expect(second.authority.root == first.authority.root)
        #expect(second.authority.issuing == first.authority.issuing)
        #expect(!second.hasNewRoot)
    }

    /// State after a process was killed between writing the certificates and the vault.
    @Test
    func certificatesWithoutKeysAreReissued() throws {
        let first = try authority(day: 0)
        try vault.update { try $0.setInterception(nil) }
        let second = try authority(day: 0)
        #expect(second.hasNewRoot)
        #expect(second.authority.root != first.authority.root)
        #expect(try authority(day: 0).authority.root == second.authority.root)
    }

    // MARK: Rotation

    /// The CPU time of this thread.
    private static var threadSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test
    func rotationRemovesTheOldCA() throws {
        let first = try authority(day: 0)
        let begun = Self.threadSeconds
        let second = try store.rotate(for: Self.hosts, in: vault, at: Self.start)
        #expect(Self.threadSeconds - begun < 1)
        #expect(second.root != first.authority.root && second.issuing != first.authority.issuing)
        #expect(second.serves(Self.hosts, at: Self.start))
        let kept = try authority(day: 0)
        #expect(kept.authority.root == second.root && kept.authority.issuing == second.issuing && !kept.hasNewRoot)
        #expect(try home.files(in: Home.interceptionFolder, suffix: "").count == 2)
    }

    private var next: String { "home/Certs/interception/root.pem.next" }

    /// State after a process was killed after writing the certificate and before writing the vault.
    @Test
    func rotationWithoutTheVaultHasNoEffect() throws {
        let first = try authority(day: 0)
        let stranger = try InterceptionAuthority.create(at: Self.start).root
        try folder.write(next, stranger.pem)
        #expect(try authority(day: 0).authority.root == first.authority.root)
        // The next write cleans up.
        #expect(try authority(day: 0, hosts: ["other.example"]).authority.root == first.authority.root)
        #expect(!FileManager.default.fileExists(atPath: folder.file(next)))
    }

    /// State after a process was killed when the vault contained the new keys and `root.pem` was still the old one.
    @Test(arguments: [true, false])
    func nextProcessCompletesARotationThatReachedTheVault(_ hadRoot: Bool) throws {
        let first = try authority(day: 0)
        let (old, oldIssuing) = (first.authority.root.pem, first.authority.issuing[0].pem)
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
            for: Self.hosts, in: SealedVault(home: home.path).open { throw CancellationError() }, at: Self.start)
        #expect(third.authority.root == second.root)
        #expect(third.authority.serves(Self.hosts, at: Self.start))
        #expect(try store.root() == second.root)
        #expect(!FileManager.default.fileExists(atPath: folder.file(next)))
    }

    @Test
    func concurrentRotationsLeaveOneConsistentCA() async throws {
        _ = try authority(day: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let own = try SealedVault(home: home.path).open { throw CancellationError() }
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

    // MARK: More hosts than fit into one certificate

    private static let many = hosts(10_000)

    private static func hosts(_ count: Int) -> [String] {
        (0..<count).map { "host\($0).dept\($0 % 97).corp.example" } + ["*.wild.example", "10.1.2.3"]
    }

    private var issuingFile: String { "home/Certs/interception/issuing.pem" }

    @Test(arguments: [10_000, 100_000])
    func certificatesForManyHostsAreReusedByTheNextProcess(count: Int) throws {
        let hosts = Self.hosts(count)
        let first = try authority(day: 0, hosts: hosts)
        #expect(first.authority.issuing.count > count / 300)
        let before = try FileManager.default.attributesOfItem(atPath: folder.file(issuingFile))
        let other = try SealedVault(home: home.path).open { throw CancellationError() }
        let second = try InterceptionStore(home: home).authority(
            for: hosts.shuffled(), in: other, at: Self.start + 18 * Self.day)
        #expect(second.authority.issuing == first.authority.issuing)
        #expect(second.authority.permits("host9999.dept8.corp.example") && second.authority.permits("10.1.2.3"))
        let after = try FileManager.default.attributesOfItem(atPath: folder.file(issuingFile))
        #expect(after[.systemFileNumber] as? Int == before[.systemFileNumber] as? Int)
        #expect(try authority(day: 19, hosts: hosts).authority.issuing != first.authority.issuing)
    }

    /// Removing a line replaces the key, so that certificates issued for the old list are useless to a thief of the new
    /// key.
    @Test
    func changedListReplacesTheKeyOfAllParts() throws {
        let first = try authority(day: 0, hosts: Self.many).authority
        let second = try authority(day: 0, hosts: Array(Self.many.dropFirst())).authority
        #expect(second.root == first.root)
        #expect(!second.permits(Self.many[0]))
        #expect(first.issuing.allSatisfy { !second.issuingKey.matches($0) })
        #expect(try authority(day: 0, hosts: ["git.corp.example"]).authority.issuing.count == 1)
    }

    /// One certificate for all hosts, as earlier versions issued it.
    @Test(arguments: [(10, true), (1_000, false)])
    func singleCertificateIsKeptIfItIsSmallEnough(count: Int, isTakenOn: Bool) throws {
        let hosts = (0..<count).map { "host\($0).dept\($0 % 97).corp.example" }
        let root = try authority(day: 0, hosts: []).authority.root
        let rootKey = try PrivateKey(pkcs8: try #require(vault.contents.interception).rootKey)
        let key = try PrivateKey.generateP256()
        let one = try CertificateTemplate(
            subject: .parts(organization: "Countersign", commonName: "Countersign interception issuer 0102"),
            serial: InterceptionAuthority.newSerial(), notBefore: Self.start, notAfter: Self.start + 29 * Self.day,
            extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 0) + [
                .serverAuthentication,
                .init(
                    identifier: InterceptionStoreTests.nameConstraints, isCritical: true,
                    value: NameConstraints(names: hosts.sorted(), addresses: []).der),
            ]
        ).signed(for: key, issuer: root, signer: rootKey)
        try vault.update { contents in
            try contents.setInterception(.init(rootKey: rootKey.pkcs8, issuingKey: key.pkcs8))
        }
        try folder.write(issuingFile, one.pem)

        let kept = try authority(day: 0, hosts: hosts)
        #expect((kept.authority.issuing == [one]) == isTakenOn)
        #expect((folder.text(issuingFile) == one.pem) == isTakenOn)
        #expect(kept.authority.root == root && !kept.hasNewRoot)
        #expect(kept.authority.issuing.allSatisfy { $0.der.count < 8 << 10 })
        #expect(kept.authority.serves(hosts, at: Self.start))
    }

    /// OpenSSL's NID_name_constraints.
    private static let nameConstraints: Int32 = 666

    @Test(arguments: ["a part is missing", "cut off", "parts of two keys", "nothing"])
    func damagedFileIsReissued(fault: String) throws {
        let first = try authority(day: 0, hosts: Self.many).authority
        let file = home.issuingCertificate
        switch fault {
        case "a part is missing": try folder.write(issuingFile, first.issuing.dropLast().map(\.pem).joined())
        case "cut off": try folder.write(issuingFile, String(folder.text(issuingFile).dropLast(2_000)))
        case "parts of two keys":
            let other = try InterceptionAuthority.create(permitting: Self.many, at: Self.start)
            try folder.write(issuingFile, (first.issuing.dropLast() + other.issuing.suffix(1)).map(\.pem).joined())
        default: try file.remove()
        }
        let second = try authority(day: 0, hosts: Self.many)
        #expect(second.authority.issuing != first.issuing && second.authority.root == first.root && !second.hasNewRoot)
        #expect(second.authority.serves(Self.many, at: Self.start))
        #expect(folder.text(issuingFile) == second.authority.issuing.map(\.pem).joined())
    }
}
