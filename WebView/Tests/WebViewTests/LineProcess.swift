// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// A child process that is spoken to in lines.
final class LineProcess: @unchecked Sendable {
    /// Protects everything below.
    private let condition = NSCondition()
    private var lines: [String] = []
    private var errors = Data()
    private var hasEnded = false
    private let process = Process()
    private let input = Pipe()

    init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        signal(SIGPIPE, SIG_IGN)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            .filter { !$0.value.isEmpty }
        let (output, error) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = error
        try process.run()
        Thread { self.read(output.fileHandleForReading) }.start()
        Thread {
            while true {
                let data = error.fileHandleForReading.availableData
                guard !data.isEmpty else { return }
                self.condition.withLock { self.errors += data }
            }
        }.start()
    }

    var processID: pid_t { process.processIdentifier }
    var standardError: String { condition.withLock { String(decoding: errors, as: UTF8.self) } }

    func write(_ bytes: [UInt8]) {
        try? input.fileHandleForWriting.write(contentsOf: Data(bytes))
    }

    func closeInput() {
        try? input.fileHandleForWriting.close()
    }

    /// Waits for the first line from `start` on for which `match` has a value; nil when the output ends without one or
    /// a minute has passed.
    func first<Value>(from start: Int = 0, _ match: (String) -> Value?) -> Value? {
        let deadline = Date(timeIntervalSinceNow: 60)
        var next = start
        condition.lock()
        defer { condition.unlock() }
        while true {
            while next < lines.count {
                if let value = match(lines[next]) { return value }
                next += 1
            }
            if hasEnded || !condition.wait(until: deadline) { return nil }
        }
    }

    var allLines: [String] { condition.withLock { lines } }

    /// Waits for the end of the output and of the process.
    func exitStatus() -> Int32 {
        _ = first { _ in nil as Void? }
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    func kill() {
        if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
    }

    private func read(_ file: FileHandle) {
        var pending = Data()
        while true {
            let data = file.availableData
            pending += data
            var complete: [String] = []
            while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                complete.append(String(decoding: pending[..<end], as: UTF8.self))
                pending = Data(pending[pending.index(after: end)...])
            }
            condition.withLock {
                lines += complete
                if data.isEmpty { hasEnded = true }
                condition.broadcast()
            }
            if data.isEmpty { return }
        }
    }
}
