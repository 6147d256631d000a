// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignPAC

/// A program in C, which shares the header with the worker, tries what a script's process must not be able to do.
@Suite struct ConfinementTests {
    /// 159 is 128 and SIGSYS.
    @Test(
        arguments: [
            ("compute", 0), ("allocate", 1), ("loop", 12), ("open", 159), ("socket", 159), ("fork", 159),
            ("execute", 159),
            ("kill", 159), ("write", 159), ("read", 159), ("code", 159),
        ] as [(String, Int32)])
    func aConfinedProcessHasNoRights(action: String, status: Int32) throws {
        let scratch = try TemporaryFolder("confined")
        let program = scratch.file("confined")
        let compiled = try Command.run(
            try Tool.path("gcc"),
            [
                "-I", "\(Tool.repository)/Sources/CLinux", "-o", program,
                "\(Tool.repository)/Tests/PACTests/confined.c",
            ], in: scratch)
        try #require(compiled.status == 0, "\(compiled.said)")
        #expect(try Command.run(program, [action], in: scratch).status == status)
    }

    /// `/proc` says of the worker that its filter is in force, and which descriptors it has.
    @Test func theWorkerIsConfined() throws {
        let worker = try WorkerProcess.start(try Scripts.program())
        let status = TextFile.lines("/proc/\(worker.pid)/status")
        #expect(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "\(status)")
        let limits = TextFile.text("/proc/\(worker.pid)/limits")
        #expect(limits.contains(/Max open files +0 +0/) && limits.contains(/Max processes +0 +0/))
        #expect(limits.contains(/Max file size +0 +0/) && limits.contains(/Max core file size +0 +0/))
        #expect(!limits.contains(/Max address space +unlimited/))
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(worker.pid)/fd")
        #expect(open.sorted() == ["0", "1", "2"])
    }
}
