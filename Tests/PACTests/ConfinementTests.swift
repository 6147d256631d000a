// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignPAC

/// A program in C, which shares the header with the worker, tries the operations that a script's process must not be
/// able to perform.
@Suite struct ConfinementTests {
    /// 159 is 128 and SIGSYS. With JavaScriptCore, three system calls fail instead, so that nothing else is possible.
    @Test(
        arguments: [
            ("compute", 0, 0), ("allocate", 1, 1), ("loop", 12, 12), ("open", 159, 159), ("socket", 159, 159),
            ("fork", 159, 159), ("thread", 159, 159), ("execute", 159, 159), ("kill", 159, 159), ("abort", 159, 159),
            ("write", 159, 1), ("read", 159, 159), ("pread", 159, 1), ("yield", 159, 1), ("code", 159, 159),
        ] as [(String, Int32, Int32)])
    func aConfinedProcessHasNoRights(action: String, killed: Int32, failed: Int32) throws {
        let scratch = try TemporaryFolder("confined")
        let program = scratch.file("confined")
        let compiled = try Command.run(
            try Tool.path("gcc"),
            [
                "-I", "\(Tool.repository)/Sources/CLinux", "-o", program,
                "\(Tool.repository)/Tests/PACTests/confined.c",
            ], in: scratch)
        try #require(compiled.status == 0, "\(compiled.said)")
        #expect(try Command.run(program, [action, "kill"], in: scratch).status == killed)
        #expect(try Command.run(program, [action, "fail"], in: scratch).status == failed)
    }

    /// `/proc` shows that the worker's filter is in force, and which descriptors it has.
    @Test(arguments: EngineKind.allCases)
    func theWorkerIsConfined(engine: EngineKind) throws {
        let worker = try WorkerProcess.start(try Scripts.program(engine))
        let status = TextFile.lines("/proc/\(worker.pid)/status")
        #expect(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "\(status)")
        #expect(status.contains("Threads:\t1"), "\(status)")
        let maps = worker.maps
        #expect(maps.contains("libjavascriptcoregtk") == (engine == .javaScriptCore))
        #expect(!maps.contains("rwx"), "no memory can be written and run")
        let limits = TextFile.text("/proc/\(worker.pid)/limits")
        #expect(limits.contains(/Max open files +0 +0/) && limits.contains(/Max processes +0 +0/))
        #expect(limits.contains(/Max file size +0 +0/) && limits.contains(/Max core file size +0 +0/))
        #expect(!limits.contains(/Max address space +unlimited/))
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(worker.pid)/fd")
        #expect(open.sorted() == ["0", "1", "2"])
    }
}

extension WorkerProcess {
    /// The files in its address space. One read does not return all of them.
    var maps: String {
        let file = FileHandle(forReadingAtPath: "/proc/\(pid)/maps")
        return String(decoding: (try? file?.readToEnd()) ?? Data(), as: UTF8.self)
    }
}
