// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Logging
import Synchronization
import Testing

@testable import Countersign

/// From a home's vault and anchors to the current policy.
@Suite(.waiting) struct TrustExceptionTests {
    private let folder: TemporaryFolder
    private let home: Home
    private static let origin = Origin(scheme: .https, host: "printer.corp.example", port: 443)
    private static let leaf = [UInt8](repeating: 7, count: 32)

    init() throws {
        folder = try TemporaryFolder("trust")
        home = Home(path: folder.file("home"))
    }

    private func open() throws -> OpenVault {
        try SealedVault(home: home.path).openOrCreate { throw CountersignError(.environment, "unasked") }
    }

    private func allow(until: Int64? = nil, answers: Bool = false, in vault: OpenVault) throws {
        try vault.update {
            try $0.setTrustException(
                TrustExceptionRecord(
                    host: Self.origin.host, port: 443, leafSHA256: Self.leaf, until: until, answers: answers, made: 1))
        }
    }

    private func keeper(_ now: @escaping @Sendable () -> Int64) throws -> PolicyKeeper {
        try PolicyKeeper(
            home: home, interception: .never, environment: [:],
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, now: now
        ) { throw CountersignError(.environment, "unasked") }
    }

    @Test func addedAndRemovedExceptionsApplyAtTheNextReload() throws {
        let vault = try open()
        let keeper = try keeper { 1_800_000_000 }
        func exceptionAnswers() -> Bool? {
            keeper.policy.current.trustException(for: Self.origin, leaf: Self.leaf, now: 1_800_000_000)?.answers
        }
        #expect(exceptionAnswers() == nil)
        let generations = [keeper.policy.current.generation]
        try allow(in: vault)
        keeper.refresh()
        #expect(exceptionAnswers() == false)
        try allow(answers: true, in: vault)
        keeper.refresh()
        #expect(exceptionAnswers() == true)
        try vault.update { $0.removeTrustExceptions(host: Self.origin.host, port: 443) }
        keeper.refresh()
        #expect(exceptionAnswers() == nil)
        // After each change, earlier connections are not reused.
        #expect(keeper.policy.current.generation == generations[0] + 3)
        keeper.refresh()
        #expect(keeper.policy.current.generation == generations[0] + 3)
    }

    @Test func expiringExceptionReplacesThePolicyOnce() throws {
        let vault = try open()
        try allow(until: 1_800_000_010, in: vault)
        let clock = ClockBox()
        let keeper = try keeper { clock.now }
        let first = keeper.policy.current.generation
        clock.now = 1_800_000_010
        keeper.refresh()
        #expect(keeper.policy.current.generation == first)
        clock.now = 1_800_000_011
        keeper.refresh()
        #expect(keeper.policy.current.generation == first + 1)
        #expect(keeper.policy.current.trustExceptions.isEmpty)
        keeper.refresh()
        #expect(keeper.policy.current.generation == first + 1)
    }

    @Test func lockedVaultHasNoExceptions() throws {
        try allow(in: try open())
        let keeper = try keeper { 1_800_000_000 }
        #expect(!keeper.policy.current.trustExceptions.isEmpty)
        keeper.lock()
        #expect(keeper.policy.current.trustExceptions.isEmpty)
        try keeper.unlock(passphrase: nil)
        #expect(!keeper.policy.current.trustExceptions.isEmpty)
    }

    // MARK: Anchors

    private static let pki = "\(Tool.repository)/Certs/dev/pki"

    private func put(_ bytes: [UInt8], _ name: String = "test.pem") throws {
        try home.file("Certs/anchors/\(name)").replace(with: bytes)
    }

    @Test func anchorFilesContainCertificatesAndRevocationLists() throws {
        let root = TextFile.bytes("\(Self.pki)/origin-root.pem")
        let list = TextFile.bytes("\(Self.pki)/origin-root.crl.pem")
        try put(root + list, "both.pem")
        try put(list, "list.pem")
        try put(root, "root.pem")
        let anchors = try home.anchorFiles()
        #expect(anchors.certificates.count == 1)
        #expect(anchors.revocationLists.count == 2)
        #expect(anchors == (try home.anchorFiles()))
        try put(Array("# another\n".utf8) + list, "list.pem")
        #expect(anchors != (try home.anchorFiles()))
    }

    @Test func truncatedOrEmptyAnchorFileIsAnErrorNamingTheFile() throws {
        let root = TextFile.bytes("\(Self.pki)/origin-root.pem")
        let list = TextFile.bytes("\(Self.pki)/origin-root.crl.pem")
        let key = TextFile.bytes("\(Self.pki)/bad-expired.key.pem")
        let faulty: [[UInt8]] = [
            [], Array("hello\n".utf8), key, root.dropLast(30), Array(root.prefix(100)), Array(root.prefix(15)),
            root + list.dropLast(40), root + Array(list.prefix(40)),
            Array(String(decoding: root, as: UTF8.self).replacing("MII", with: "MIJ").utf8),
            root + Array(String(decoding: list, as: UTF8.self).replacing("MII", with: "MIJ").utf8),
        ]
        for bytes in faulty {
            try put(bytes)
            let error = #expect(throws: CountersignError.self, "\(String(decoding: bytes, as: UTF8.self))") {
                try home.anchorFiles()
            }
            #expect(error?.detail.hasPrefix("Certs/anchors/test.pem: ") == true, "\(error?.detail ?? "")")
            #expect(throws: CountersignError.self) { try keeper { 1_800_000_000 } }
        }
    }

    @Test func invalidAnchorFileKeepsThePreviousPolicy() throws {
        try put(TextFile.bytes("\(Self.pki)/origin-root.pem"))
        let keeper = try keeper { 1_800_000_000 }
        let before = keeper.policy.current
        try put(Array("-----BEGIN CERTIFICATE-----\nMII".utf8))
        keeper.refresh()
        #expect(keeper.policy.current === before)
        try put(
            TextFile.bytes("\(Self.pki)/origin-root.pem") + TextFile.bytes("\(Self.pki)/origin-root.crl.pem"))
        keeper.refresh()
        #expect(keeper.policy.current.generation == before.generation + 1)
    }
}

/// A clock that the test sets.
private final class ClockBox: Sendable {
    private let seconds = Mutex<Int64>(1_800_000_000)

    var now: Int64 {
        get { seconds.withLock { $0 } }
        set { seconds.withLock { $0 = newValue } }
    }
}
