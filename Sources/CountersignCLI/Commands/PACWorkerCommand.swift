// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignPAC

/// `countersign pac-worker`: the process without rights that runs proxy auto-configuration scripts. Only `countersign`
/// itself starts it.
struct PACWorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: PACWorker.command, abstract: "Run scripts for another process.", shouldDisplay: false)

    func run() { PACWorker.run() }
}
