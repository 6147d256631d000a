// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import CountersignAudit

/// Checkpoints that are signed while records are written.
@Suite struct AuditSigningTests {
    /// Keeps the work of checkpoints until it is done.
    private final class Desk: Sendable {
        private let work = Mutex<[@Sendable () -> Void]>([])

        func add(_ work: @escaping @Sendable () -> Void) { self.work.withLock { $0.append(work) } }

        var count: Int { work.withLock { $0.count } }

        func run() {
            let all = work.withLock { work in
                defer { work = [] }
                return work
            }
            for work in all { work() }
        }
    }

    /// Writes records while a signature is being made, whose time is asked for then.
    private final class Meddler: Sendable {
        private let state = Mutex((left: 0, file: AuditFile?.none))

        func write(_ count: Int, into file: AuditFile) { state.withLock { $0 = (count, file) } }

        func clock() {
            let file = state.withLock { state -> AuditFile? in
                guard state.left > 0 else { return nil }
                state.left -= 1
                return state.file
            }
            file?.append(AuditFixture.use(1))
        }

        func rest() { state.withLock { $0 = (0, nil) } }
    }

    private let folder: AuditFolder
    private let desk = Desk()
    private let meddler = Meddler()

    init() throws { folder = try AuditFolder() }

    private func open() throws -> AuditFile {
        try AuditFile(
            path: folder.file(), key: AuditFixture.key,
            clock: { [meddler] in
                meddler.clock()
                return AuditFixture.time(0)
            }, run: { [desk] in desk.add($0) }, report: { _ in })
    }

    private func append(_ count: Int, to file: AuditFile) {
        for number in 0..<count { #expect(file.append(AuditFixture.use(number))) }
    }

    private var checkpoints: [Int] {
        let kinds = folder.kinds()
        return kinds.indices.filter { kinds[$0] == "checkpoint" }
    }

    @Test func recordsDoNotWaitForTheSignature() throws {
        let file = try open()
        append(1100, to: file)
        #expect(desk.count == 1, "one at a time")
        #expect(checkpoints == [])
        desk.run()
        #expect(checkpoints == [1101])
        append(1000, to: file)
        desk.run()
        #expect(checkpoints == [1101, 2102])
        file.close()
        let report = try folder.verify()
        #expect(report.isIntact && report.signatures == 3 && report.unsigned == 0, "\(report.lines)")
    }

    /// The ninth signature is made while nobody can write.
    @Test(arguments: [1, 7, 8]) func aSignatureOfFormerRecordsIsMadeAgain(written: Int) throws {
        let file = try open()
        append(1000, to: file)
        meddler.write(written, into: file)
        desk.run()
        meddler.rest()
        #expect(checkpoints == [1001 + written])
        append(1000, to: file)
        #expect(desk.count == 1, "the next one is made, too")
        file.close()
        #expect(try folder.verify().isIntact)
    }

    @Test func nothingFollowsTheEndOfTheFile() throws {
        let file = try open()
        append(1000, to: file)
        file.close()
        desk.run()
        #expect(folder.kinds().last == "end" && checkpoints == [])
        #expect(try folder.verify().isIntact)
    }

    @Test func aRotationSignsWhatWaitsForItsSignature() throws {
        let file = try open()
        append(1000, to: file)
        #expect(rename(folder.file(), folder.file("old")) == 0)
        try file.reopen()
        desk.run()
        #expect(folder.kinds() == ["continue"])
        append(999, to: file)
        desk.run()
        #expect(checkpoints == [1000])
        #expect(try folder.verify("old", "audit").isIntact)
    }

    @Test func aMinuteWithRecordsEndsWithOneSignature() throws {
        let file = try open()
        append(1, to: file)
        for _ in 0..<3 { file.secondPassed(now: .max) }
        #expect(desk.count == 1)
        desk.run()
        #expect(checkpoints == [2])
    }
}
