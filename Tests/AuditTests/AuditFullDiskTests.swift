// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignAudit

/// In most tests, the largest size of a file stands for the end of the disk. It counts for a whole process, so that
/// each of them is one.
@Suite struct AuditFullDiskTests {
    private static func limit(_ bytes: UInt) {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit(rlim_cur: bytes, rlim_max: .max)
        _ = setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    }

    @Test func recordsThatDoNotFitAreCounted() async {
        await #expect(processExitsWith: .success) {
            let folder = try AuditFolder()
            let file = try folder.open()
            // Each limit cuts another place of a record.
            for round in 0..<14 {
                let before = try folder.verify().uses
                Self.limit(UInt(folder.bytes().count + 900 + round * 37))
                let isWritten = (0..<8).map { file.append(AuditFixture.use($0)) }
                #expect(isWritten.contains(true) && isWritten.last == false)
                let full = try folder.verify()
                #expect(full.fault == nil && full.uses == before + UInt64(isWritten.count { $0 }), "\(full.lines)")
                Self.limit(.max)
                let lost = try folder.verify().lost
                file.secondPassed(now: 0)
                // The record that was cut is completed.
                let again = try folder.verify()
                let completed = full.cutBytes > 0 ? 1 : 0 as UInt64
                #expect(again.isIntact && again.cutBytes == 0 && again.uses == full.uses + completed, "\(again.lines)")
                #expect(again.lost - lost + again.uses - before == 8, "\(again.lines)")
            }
            #expect(
                folder.reports.first
                    == "cannot write the audit \"\(folder.file())\": File too large; "
                    + "uses of credentials are not recorded until it can be written")
            #expect(folder.reports.count == 2, "one report of each in a minute")
            #expect(folder.reports.last?.contains("can be written again; ") == true)
        }
    }

    @Test(.enabled(if: SmallDisk.isPossible, "unshare(1) cannot mount a file system here"))
    func aRequiredAuditRefusesBeforeARecordIsLost() throws {
        let disk = try SmallDisk(size: "256k")
        let folder = try AuditFolder(in: disk.path)
        let file = try folder.open(isRequired: true)
        #expect(!file.refuses)
        try disk.fill(leaving: 0)
        var recorded = 0
        while !file.refuses {
            #expect(file.append(AuditFixture.use(recorded)))
            recorded += 1
        }
        // Requests in progress are still recorded.
        for number in 0..<100 { #expect(file.append(AuditFixture.use(number))) }
        file.secondPassed(now: 0)
        #expect(file.refuses)
        #expect(
            folder.reports == [
                "cannot write the audit \"\(folder.file())\": No space left on device; no credential is used until it "
                    + "can be written"
            ])
        try disk.empty()
        file.secondPassed(now: 0)
        #expect(!file.refuses)
        file.close()
        let report = try folder.verify()
        #expect(report.isIntact && report.uses == UInt64(recorded + 100) && report.lost == 0, "\(report.lines)")
        var status = stat()
        #expect(stat(folder.file(), &status) == 0 && Int(status.st_blocks) * 512 < folder.bytes().count + 4096)
    }

    @Test func aRotationLeavesAnUnfinishedLineBehind() async {
        await #expect(processExitsWith: .success) {
            for extra in [500, 520, 700, 760] {
                let folder = try AuditFolder()
                let file = try folder.open()
                Self.limit(UInt(folder.bytes().count + extra))
                for number in 0..<3 { file.append(AuditFixture.use(number)) }
                #expect(rename(folder.file(), folder.file("old")) == 0)
                try file.reopen()
                Self.limit(.max)
                file.close()
                let report = try folder.verify("old", "audit")
                #expect(report.isIntact && report.isEnded, "\(report.lines)")
                #expect(report.uses + report.lost == 3, "\(report.lines)")
            }
        }
    }

    @Test func aServerThatStartsOnAFullDiskContinuesLater() async {
        await #expect(processExitsWith: .success) {
            let folder = try AuditFolder()
            try folder.open().close()
            for room in [0, 10, 100] {
                Self.limit(UInt(folder.bytes().count + room))
                let file = try folder.open(isRequired: true)
                #expect(file.refuses && !file.append(AuditFixture.use(1)))
                Self.limit(.max)
                file.secondPassed(now: 0)
                #expect(!file.refuses && file.append(AuditFixture.use(2)))
                file.close()
                #expect(try folder.verify().isIntact)
            }
            #expect(try folder.verify().lost == 3)
        }
    }

    @Test func whatIsMissingAtTheEndIsReported() async {
        await #expect(processExitsWith: .success) {
            let folder = try AuditFolder()
            do {
                let file = try folder.open()
                Self.limit(UInt(folder.bytes().count))
                for number in 0..<3 { file.append(AuditFixture.use(number)) }
            }
            #expect(
                folder.reports.last == "3 uses of credentials are missing in the audit \"\(folder.file())\"")
            #expect(folder.reports.count == 2)
        }
    }

    /// A file that a process and its child know.
    private static func place(of process: pid_t) -> String { "\(AuditFolder.base)/audit-of-\(process)" }

    /// A real kill, while another process writes.
    @Test func aKilledServerLosesAtMostTheLastRecord() async throws {
        let folder = try AuditFolder()
        let place = Self.place(of: getpid())
        defer { unlink(place) }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            let path = Self.place(of: getppid())
            let file = try AuditFile(path: path, key: AuditFixture.key) { _ in }
            let writer = Task.detached {
                var number = 0
                while true {
                    number += 1
                    file.append(AuditFixture.use(number))
                }
            }
            var status = stat()
            while stat(path, &status) == 0, status.st_size < 200_000 { sched_yield() }
            kill(getpid(), SIGKILL)
            await writer.value
        }
        #expect(rename(place, folder.file()) == 0)
        let killed = try folder.verify()
        #expect(killed.fault == nil && killed.uses > 300, "\(killed.lines)")
        let file = try folder.open()
        file.close()
        let report = try folder.verify()
        #expect(report.isIntact && report.uses == killed.uses && report.interruptions == [killed.records + 1])
    }
}
