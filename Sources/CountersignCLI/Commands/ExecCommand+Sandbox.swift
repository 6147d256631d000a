// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignClientSetup
import CountersignCryptography
import CountersignHome
import CountersignProxy
import FoundationEssentials

/// `exec --sandbox`.
extension ExecCommand {
    /// A command in a sandbox that waits for its proxy, and the files of its environment.
    struct Sandboxed {
        let child: SandboxedChild
        let files: ClientFiles
    }

    /// Makes the sandbox. Its proxy must accept on ``SandboxedChild/listener``.
    func startInSandbox(
        _ token: Secret, _ home: Home, _ access: VaultAccess, _ descriptors: InheritedDescriptors
    ) async throws -> Sandboxed {
        let inherited = ProcessInfo.processInfo.environment
        let bwrap = try SandboxFailure.bwrap(in: inherited["PATH"] ?? "")
        let surroundings = try SandboxPlan.Surroundings.current(
            homes: [home.path] + Self.assumedHomes(inherited), environment: inherited)
        let trust = ClientTrust(home: home, access: access)
        let files = try trust.files(named: ClientFiles.nameOfThisProcess())
        do {
            let environment = try trust.environment(
                for: .tcp(host: SandboxDoor.host, port: SandboxDoor.port), token: token, files: files,
                inherited: SandboxEnvironment.withoutConfiguration(inherited))
            if let warning = environment.replaced.warning { Console.warning(warning) }
            let bundles = [home.bundle.path, home.javaBundle.path].compactMap(SandboxPlan.Surroundings.realPath)
            let plan = try sandbox.plan(surroundings, shown: bundles + [files.folder])
            let child = try await SandboxedChild.start(
                bwrap,
                environment: SandboxEnvironment.visible(
                    environment.applied(to: inherited), in: surroundings.workingFolder),
                descriptors: descriptors
            ) { filter, door in
                let first = [SandboxPlan.innerExecutable, SandboxDoor.command, "\(door)", "--"]
                return try plan.arguments(running: first + words, filter: filter)
            }
            return Sandboxed(child: child, files: files)
        } catch {
            files.remove()
            throw error
        }
    }

    /// The homes that other commands would use.
    private static func assumedHomes(_ environment: [String: String]) -> [String] {
        let withoutOwn = environment.filter { $0.key != "COUNTERSIGN_HOME" }
        return [environment, withoutOwn].compactMap { try? Home.locate(flag: nil, environment: $0).path }
    }
}
