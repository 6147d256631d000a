// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignAudit

@Suite struct AuditFileTests {
    private let folder: AuditFolder

    init() throws { folder = try AuditFolder() }

    @Test func recordsAreInTheFileAtOnce() throws {
        let file = try folder.open()
        #expect(file.append(AuditFixture.use(1)))
        #expect(folder.kinds() == ["begin", "use"])
        file.close()
        #expect(!file.append(AuditFixture.use(2)))
        #expect(folder.kinds() == ["begin", "use", "end"])
        var status = stat()
        #expect(stat(folder.file(), &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try folder.verify().isIntact)
        #expect(folder.reports.isEmpty)
    }

    @Test func aServerContinuesTheAuditOfAnother() throws {
        for number in 1...3 {
            let file = try folder.open()
            file.append(AuditFixture.use(number))
        }
        #expect(folder.kinds() == ["begin", "use", "end", "start", "use", "end", "start", "use", "end"])
        let report = try folder.verify()
        #expect(report.isIntact && report.isEnded && report.interruptions.isEmpty && report.uses == 3)
    }

    @Test func aCheckpointIsWrittenEachThousandRecords() throws {
        let file = try folder.open()
        for number in 0..<2500 { file.append(AuditFixture.use(number)) }
        let kinds = folder.kinds()
        #expect(kinds.indices.filter { kinds[$0] == "checkpoint" } == [1000, 2001])
        #expect(try folder.verify().unsigned == 501)
    }

    @Test func aCheckpointIsWrittenEachMinuteWithRecords() throws {
        let file = try folder.open()
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let now = UInt64(time.tv_sec) + 2
        file.secondPassed(now: now + 50)
        #expect(folder.kinds() == ["begin"])
        file.secondPassed(now: now + 60)
        file.secondPassed(now: now + 200)
        #expect(folder.kinds() == ["begin", "checkpoint"])
        file.append(AuditFixture.use(1))
        file.secondPassed(now: now + 119)
        #expect(folder.kinds() == ["begin", "checkpoint", "use"])
        file.secondPassed(now: now + 120)
        #expect(folder.kinds() == ["begin", "checkpoint", "use", "checkpoint"])
        #expect(try folder.verify().signatures == 2)
    }

    /// A kill leaves some part of what was written.
    @Test func anAuditContinuesAfterAKillAtEachByte() throws {
        var file: AuditFile? = try folder.open()
        file?.append(AuditFixture.use(1))
        file?.append(AuditFixture.use(2))
        let whole = folder.bytes()
        file = nil
        var lines = [0]
        for (index, byte) in whole.enumerated() where byte == 0x0A { lines.append(index + 1) }
        for end in 0...whole.count {
            try folder.write(Array(whole[..<end]))
            let records = lines.filter { $0 > 0 && $0 - 1 <= end }.count
            // A line without its line feed is complete; nothing is lost then.
            let isTorn = !lines.contains(end) && !lines.contains(end + 1)
            let torn = try folder.verify()
            #expect(torn.fault == nil && torn.records == UInt64(records) && (torn.cutBytes > 0) == isTorn, "\(end)")
            let file = try folder.open()
            #expect(file.append(AuditFixture.use(3)))
            file.close()
            let report = try folder.verify()
            #expect(report.isIntact && report.isEnded && report.cutBytes == 0, "\(end): \(report.lines)")
            #expect(report.records == UInt64(records + 3), "\(end)")
            #expect(report.interruptions == (records == 0 ? [] : [UInt64(records + 1)]), "\(end)")
            #expect(folder.bytes().starts(with: whole[..<end]), "no byte is deleted")
        }
    }

    /// The first kill tears a record, the second one the lines that repair it.
    @Test func aRepairIsRepairedToo() throws {
        var file: AuditFile? = try folder.open()
        file?.append(AuditFixture.use(1))
        let torn = folder.bytes().dropLast(40)
        file = nil
        try folder.write(Array(torn))
        file = try folder.open()
        let repaired = folder.bytes()
        file = nil
        for end in torn.count...repaired.count {
            try folder.write(Array(repaired[..<end]))
            #expect(try folder.verify().fault == nil, "\(end)")
            let file = try folder.open()
            file.append(AuditFixture.use(2))
            file.close()
            let report = try folder.verify()
            #expect(report.isIntact && report.isEnded && report.uses == 1, "\(end): \(report.lines)")
        }
    }

    @Test func unfinishedLinesCannotBeChangedLater() throws {
        var file: AuditFile? = try folder.open()
        file?.append(AuditFixture.use(1))
        let torn = folder.bytes().dropLast(40)
        file = nil
        try folder.write(Array(torn))
        file = try folder.open()
        file = nil
        let bytes = folder.bytes()
        #expect(folder.kinds() == ["begin", "-", "interrupted", "end"])
        let line = (bytes.firstIndex(of: 0x0A) ?? 0) + 1
        for index in line..<torn.count {
            var changed = bytes
            changed[index] ^= 1
            try folder.write(changed)
            let fault = try folder.verify().fault
            #expect(fault?.line == 2 && fault?.kind == .cut, "\(index)")
        }
        try folder.write(Array(bytes[..<line] + bytes[line...].drop { $0 != 0x0A }.dropFirst()))
        #expect(try folder.verify().fault?.kind == .cut)
    }

    @Test func twoServersDoNotWriteOneFile() throws {
        let file = try folder.open()
        do throws(AuditError) {
            _ = try folder.open()
            Issue.record("two servers have the file")
        } catch {
            #expect(error.code == .inUse)
            #expect(error.detail == "another process writes the audit \"\(folder.file())\"")
        }
        file.close()
    }

    @Test func manyThreadsMakeOneChain() async throws {
        let file = try folder.open()
        await withTaskGroup { group in
            for thread in 0..<8 {
                group.addTask { for number in 0..<200 { file.append(AuditFixture.use(thread * 200 + number)) } }
            }
        }
        let report = try folder.verify()
        #expect(report.isIntact && report.uses == 1600 && report.signatures == 1)
    }

    // MARK: Files that cannot be continued

    @Test func aDamagedFileIsNotContinued() throws {
        try folder.write(Array(AuditFixture.lines().joined()))
        var bytes = folder.bytes()
        let line = bytes.indices.filter { bytes[$0] == 0x0A }[5] + 1
        bytes[line + 20] ^= 1
        try folder.write(bytes)
        do throws(AuditError) {
            _ = try folder.open()
            Issue.record("a damaged file was opened")
        } catch {
            #expect(error.code == .damaged(.changed))
            #expect(
                error.detail
                    == "somebody has damaged the audit \"\(folder.file())\": line 7, record 7: "
                    + "the record has been changed")
            #expect(error.hint?.contains("`mv \(folder.file()) \(folder.file()).old`") == true)
        }
        #expect(folder.bytes() == bytes)
    }

    @Test(arguments: ["important notes", "{", "{\"n\":2,\"time\"", "\u{7F}ELF"])
    func aFileThatWasNeverAnAuditIsLeftAlone(text: String) throws {
        try folder.write(Array(text.utf8))
        if "{\"n\":1,".hasPrefix(text) {
            // A server was killed while it wrote its first record.
            _ = try folder.open()
            return
        }
        do throws(AuditError) {
            _ = try folder.open()
            Issue.record("\(text) was taken for an audit")
        } catch {
            #expect(error.code == .damaged(.malformed), "\(error.detail)")
        }
        #expect(folder.bytes() == Array(text.utf8))
    }

    /// Only the end of a long file is read, and the place of a fault is still known.
    @Test func theEndOfALongFileIsVerified() throws {
        func tail(_ bytes: [UInt8], _ count: Int) throws(AuditError) -> AuditTail {
            try? folder.write(bytes)
            let file = Glibc.open(folder.file(), O_RDONLY)
            defer { close(file) }
            return try AuditTail(of: file, "f", key: AuditFixture.key.publicKey, bytes: off_t(count))
        }
        let lines = try AuditFixture.lines()
        let bytes = Array(lines.joined())
        let all = try tail(bytes, bytes.count)
        #expect(all.chain == (try AuditChain(after: lines[...])) && all.isEnded && all.isTerminated && all.cut == [])
        for count in [700, 4000, bytes.count - 1] { #expect(try tail(bytes, count) == all, "\(count)") }
        #expect(try tail(bytes.dropLast(9), 4000).cut == lines[49].dropLast(9))
        var changed = bytes
        changed[bytes.count - 300] ^= 1
        do throws(AuditError) {
            _ = try tail(changed, 4000)
            Issue.record("a damaged file was opened")
        } catch {
            #expect(error.detail.hasSuffix("line 50, record 50: the record has been changed"))
        }
        // What is before is for `countersign audit verify`.
        changed = bytes
        changed[100] ^= 1
        #expect(try tail(changed, 4000) == all)
    }

    @Test func theAuditOfAnotherKeyIsNotContinued() throws {
        try folder.open(key: AuditFixture.otherKey).close()
        do throws(AuditError) {
            _ = try folder.open()
            Issue.record("a file of another key was opened")
        } catch {
            #expect(error.code == .otherKey)
            #expect(error.detail.contains("is not this server's: line 2, record 2: signed by the key "))
            #expect(error.hint?.hasPrefix("name another file, or `mv ") == true)
        }
    }

    @Test(arguments: ["/dev/full", "/dev/null", "/", "/nowhere/audit"])
    func otherThingsAreNoFiles(path: String) {
        #expect(throws: AuditError.self) {
            try AuditFile(path: path, key: AuditFixture.key) { _ in }
        }
    }

    @Test func aFileOfSomethingElseIsNotContinued() throws {
        try folder.write(Array("PATH=/bin\n".utf8))
        #expect(throws: AuditError.self) { try folder.open() }
        #expect(folder.bytes() == Array("PATH=/bin\n".utf8))
    }

    @Test func aClockThatIsSetBackIsNoFault() throws {
        let file = try folder.open()
        folder.seconds.store(-1_000_000, ordering: .relaxed)
        file.append(AuditFixture.use(1))
        file.secondPassed(now: 0)
        file.secondPassed(now: .max)
        file.secondPassed(now: 5)
        folder.seconds.store(.min / 2, ordering: .relaxed)
        file.close()
        let report = try folder.verify()
        #expect(report.isIntact && report.isEnded && !report.clockSetBack.isEmpty)
    }
}
