// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization

/// The executable: parses its arguments, runs the command, and turns whatever is thrown into text and an exit status.
@main
enum Program {
    static func main() {
        Startup.prepare()
        do {
            let arguments = try EnvironmentFlags(ProcessInfo.processInfo.environment)
                .inserted(into: Array(CommandLine.arguments.dropFirst()), of: CountersignCommand.self)
            let command = try CountersignCommand.parseAsRoot(arguments)
            if let command = command as? any AsyncParsableCommand {
                try wait(for: command)
            } else {
                var command = command
                try command.run()
            }
        } catch {
            exit(status(of: error))
        }
    }

    /// Runs a command that stays, on other threads than this one, which only waits. Its signals are blocked in all of them,
    /// for ``SignalWatch`` to fetch.
    private static func wait(for command: any AsyncParsableCommand) throws {
        SignalWatch.block()
        let outcome = Mutex<(any Error)?>(nil)
        let done = DispatchSemaphore(value: 0)
        let box = CommandBox(command)
        Task.detached {
            do {
                var command = box.command
                try await command.run()
            } catch {
                outcome.withLock { $0 = error }
            }
            done.signal()
        }
        done.wait()
        if let error = outcome.withLock({ $0 }) { throw error }
    }

    /// Unchecked because a command is a struct of parsed values, and only the task uses it.
    private struct CommandBox: @unchecked Sendable {
        let command: any AsyncParsableCommand

        init(_ command: any AsyncParsableCommand) { self.command = command }
    }

    /// Writes what `error` has to say; gives the exit status: 0 for help, 64 for wrong use, 1 for everything else but a
    /// status that a command chose.
    private static func status(of error: any Error) -> Int32 {
        if let chosen = error as? ExitCode { return chosen.rawValue }
        let code = CountersignCommand.exitCode(for: error)
        if code == .success {
            Console.result(CountersignCommand.fullMessage(for: error) + "\n")
            return code.rawValue
        }
        if code == .validationFailure {
            Console.error(usage(error))
            return code.rawValue
        }
        for diagnostic in Diagnostic.all(in: error) { Console.error(diagnostic) }
        return ExitCode.failure.rawValue
    }

    /// What the argument parser says, in this program's form: the fault, and as a hint how it is used.
    private static func usage(_ error: any Error) -> Diagnostic {
        let lines = CountersignCommand.fullMessage(for: error).split(separator: "\n")
        var message = CountersignCommand.message(for: error)
        if let first = message.first, message.dropFirst().first?.isUppercase != true {
            message.replaceSubrange(...message.startIndex, with: first.lowercased())
        }
        if message.hasSuffix(".") { message.removeLast() }
        let help = lines.first { $0.contains("--help") }.map { $0.trimming(" .") }
        let usage = lines.first { $0.hasPrefix("Usage:") }.map { "usage:" + $0.dropFirst("Usage:".count) }
        let hint = [usage, help.map { $0.prefix(1).lowercased() + $0.dropFirst() }].compactMap(\.self).joined(
            separator: "\n")
        return Diagnostic(message, hint: hint.isEmpty ? nil : hint)
    }
}
