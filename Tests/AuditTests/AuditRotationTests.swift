// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignAudit

@Suite struct AuditRotationTests {
    private let folder: AuditFolder

    init() throws { folder = try AuditFolder() }

    @Test func theChainContinuesInTheNewFile() throws {
        let file = try folder.open()
        for round in 1...3 {
            file.append(AuditFixture.use(round))
            #expect(rename(folder.file(), folder.file("old\(round)")) == 0)
            // Between the rename and the signal.
            file.append(AuditFixture.use(round))
            try file.reopen()
        }
        file.append(AuditFixture.use(4))
        file.close()
        #expect(folder.kinds("old1") == ["begin", "use", "use", "end"])
        #expect(folder.kinds("old2") == ["continue", "use", "use", "end"])
        #expect(folder.kinds() == ["continue", "use", "end"])
        let report = try folder.verify("old1", "old2", "old3", "audit")
        #expect(report.isIntact && report.records == 15 && report.uses == 7 && report.isEnded)
        #expect(try folder.verify("old1", "old3").fault?.kind == .removed)
        #expect(try folder.verify("old2", "old1").fault?.kind == .unrelated)
        #expect(try folder.verify("audit").startsAfter == 12)
    }

    @Test func aNewServerContinuesTheNewFile() throws {
        var file: AuditFile? = try folder.open()
        #expect(rename(folder.file(), folder.file("old")) == 0)
        try file?.reopen()
        file = nil
        file = try folder.open()
        file?.append(AuditFixture.use(1))
        file = nil
        #expect(folder.kinds() == ["continue", "end", "start", "use", "end"])
        #expect(try folder.verify("old", "audit").isIntact)
    }

    @Test func aFileThatWasNotRenamedStays() throws {
        let file = try folder.open()
        try file.reopen()
        file.append(AuditFixture.use(1))
        #expect(folder.kinds() == ["begin", "use"])
    }

    @Test func aFileThatWasTruncatedBeginsAnew() throws {
        let file = try folder.open()
        file.append(AuditFixture.use(1))
        try folder.write(folder.bytes(), "copy")
        #expect(truncate(folder.file(), 0) == 0)
        try file.reopen()
        file.append(AuditFixture.use(2))
        #expect(folder.kinds() == ["continue", "use"])
        #expect(try folder.verify("copy", "audit").isIntact)
    }

    @Test func aFileWithContentsIsNotContinuedAndNoRecordIsLost() throws {
        let file = try folder.open()
        #expect(rename(folder.file(), folder.file("old")) == 0)
        try folder.write([0x41])
        #expect(throws: AuditError.self) { try file.reopen() }
        #expect(file.append(AuditFixture.use(1)))
        #expect(folder.kinds("old") == ["begin", "use"])
        #expect(folder.bytes() == [0x41])
    }

    @Test func theNewFileIsLockedAndTheOldOneIsNot() throws {
        let file = try folder.open()
        #expect(rename(folder.file(), folder.file("old")) == 0)
        try file.reopen()
        #expect(throws: AuditError.self) { try folder.open() }
        let old = try folder.open("old")
        old.close()
        #expect(folder.kinds("old") == ["begin", "end", "start", "end"])
    }
}
