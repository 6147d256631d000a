// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignPAC

/// `countersign pac-worker`: the process without rights that runs proxy auto-configuration scripts. Only `countersign`
/// itself starts it.
struct PACWorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: PACWorker.command, abstract: "Run scripts for another process.", shouldDisplay: false)

    @Argument(help: "The engine (default: the first one that is installed).") var engine: String?

    func run() throws {
        let kind = engine.flatMap(EngineKind.init)
        if let engine, kind == nil { throw ValidationError("no engine is called \(engine)") }
        PACWorker.run(kind)
    }
}
