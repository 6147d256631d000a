// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import FoundationEssentials
import Glibc

/// The executable: parses the arguments, runs the command, and turns a thrown error into text and an exit status.
@main
enum Program {
    static func main() {
        Startup.prepare()
        PrintedCommand.use(program: CountersignCommand.self)
        let given = HelperNames.arguments(CommandLine.arguments)
        do {
            // The parser shows the general help for a command that does not exist.
            if let report = UsageReport(unknownHelp: given) {
                report.write()
                exit(ExitCode.validationFailure.rawValue)
            }
            let arguments = try EnvironmentFlags(ProcessInfo.processInfo.environment)
                .inserted(into: given, of: CountersignCommand.self)
            let command = try CountersignCommand.parseAsRoot(arguments)
            if let command = command as? any AsyncParsableCommand {
                try wait(for: command)
            } else {
                var command = command
                try command.run()
            }
        } catch {
            let status = status(of: error, given)
            exit(status == 0 && Console.hasLostOutput ? ExitCode.failure.rawValue : status)
        }
        if Console.hasLostOutput { exit(ExitCode.failure.rawValue) }
    }

    /// Runs a long-running command on other threads while this one waits. Blocks the signals in all threads, so that
    /// ``SignalWatch`` receives them.
    private static func wait(for command: any AsyncParsableCommand) throws {
        SignalWatch.block()
        let box = CommandBox(command)
        try Blocking.run {
            var command = box.command
            try await command.run()
        }
    }

    /// `@unchecked` because a command is a struct of parsed values and only one task uses it.
    private struct CommandBox: @unchecked Sendable {
        let command: any AsyncParsableCommand

        init(_ command: any AsyncParsableCommand) { self.command = command }
    }

    /// Writes `error`'s message. Returns the status that the command chose, or 0 for help, 64 for a usage error, 1 for
    /// any other error. `given` are the arguments.
    private static func status(of error: any Error, _ given: [String]) -> Int32 {
        if let chosen = error as? ExitCode { return chosen.rawValue }
        let code = CountersignCommand.exitCode(for: error)
        if code == .success {
            Console.result(CountersignCommand.fullMessage(for: error) + "\n")
            return code.rawValue
        }
        if code == .validationFailure {
            UsageReport(error, given).write()
            return code.rawValue
        }
        for diagnostic in Diagnostic.all(in: error) { Console.error(diagnostic) }
        return ExitCode.failure.rawValue
    }
}
