// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `countersign sandbox-door`: the first program in the sandbox of `exec --sandbox`, which becomes the command. Only
/// `countersign` itself starts it.
struct SandboxDoorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: SandboxDoor.command, abstract: "Run a command in a sandbox.", shouldDisplay: false)

    @Argument(parsing: .captureForPassthrough, help: "The descriptor of a socket, --, and the command.")
    var words: [String] = []

    func run() throws {
        guard let socket = words.first.flatMap({ Int32($0) }) else {
            throw ValidationError("only --sandbox of exec starts this command")
        }
        let command = words.dropFirst()
        throw ExitCode(SandboxDoor.enter(socket, Array(command.first == "--" ? command.dropFirst() : command)))
    }
}
