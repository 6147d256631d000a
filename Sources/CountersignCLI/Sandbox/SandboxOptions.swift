// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignHome

/// `--sandbox` and its folders.
struct SandboxOptions: ParsableArguments {
    @Flag(
        name: .customLong("sandbox"),
        help: """
            Run the command in a sandbox: it reaches the listed sites through the proxy and no other network, and sees \
            the working folder and the system's programs, but not your home folder. Needs bubblewrap.
            """)
    var isOn = false

    @Option(
        name: .customLong("sandbox-read"),
        help: ArgumentHelp("Also show this file or folder in the sandbox; may be repeated.", valueName: "path"))
    var read: [String] = []

    @Option(
        name: .customLong("sandbox-write"),
        help: ArgumentHelp(
            "Also let the command change this file or folder; may be repeated.", valueName: "path"))
    var write: [String] = []

    func validate() throws {
        guard isOn || read.isEmpty && write.isEmpty else {
            throw ValidationError("--sandbox-read and --sandbox-write need --sandbox")
        }
    }

    /// The plan with these folders. `shown` are the files of the command's environment.
    func plan(_ surroundings: SandboxPlan.Surroundings, shown: [String]) throws(CountersignError) -> SandboxPlan {
        var plan = SandboxPlan(surroundings: surroundings, shown: shown)
        for path in read { plan.readable.append(try Self.real(path, "--sandbox-read")) }
        for path in write { plan.writable.append(try Self.real(path, "--sandbox-write")) }
        return plan
    }

    private static func real(_ path: String, _ option: String) throws(CountersignError) -> String {
        guard let real = SandboxPlan.Surroundings.realPath(path) else {
            throw CountersignError(
                .configuration, "\(option) \(path.debugDescription): there is no such file",
                hint: "name a file or folder that is there, or leave the option out")
        }
        return real
    }
}
