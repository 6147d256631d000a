// SPDX-License-Identifier: Apache-2.0

package import CountersignChallenges
package import CountersignPAC
package import CountersignParents
import CountersignSitePolicy
import Synchronization

// The main types of this module: a `RouteFinder` finds the next hops of requests from the settings. It has a
// `ScriptKeeper` for each proxy auto-configuration script, which loads the script and asks it, and `HostLookUps` makes
// the look-ups that scripts ask for.

/// Finds the next hops of requests, from the settings about parent proxies, their scripts and what is known about the
/// parents.
package final class RouteFinder: RouteFinding {
    private let settings: ParentSettings
    private let scripts: [ScriptSource: ScriptKeeper]
    private let state = Mutex(State())
    private let log: @Sendable (String) -> Void

    private struct State {
        var chooser = RouteChooser()
        var version: UInt64 = 0
    }

    /// `read` returns the contents of a script, on a thread that may block; an error is one sentence. `log` gets a
    /// sentence about what goes wrong in the background.
    package init(
        _ settings: ParentSettings, worker: WorkerProgram = .ownExecutable,
        read: @escaping @Sendable (ScriptSource) -> Result<[UInt8], ScriptError>,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.settings = settings
        self.log = log
        var scripts: [ScriptSource: ScriptKeeper] = [:]
        for case .script(let source) in settings.sources {
            scripts[source] = ScriptKeeper(source, worker: worker, read: read)
        }
        self.scripts = scripts
    }

    /// Whether every connection is direct.
    package var isDirect: Bool { settings.sources.isEmpty }

    /// Loads the scripts, or loads them again. One that cannot be loaded keeps its former contents. Returns a sentence
    /// for each that has a fault.
    package func load() async -> [String] {
        var faults: [String] = []
        for (source, script) in scripts {
            if let error = await script.load() { faults.append("--parent: the script \(source): \(error.reason)") }
        }
        networkChanged()
        return faults.sorted()
    }

    /// What was found out about parents and through look-ups no longer holds.
    package func networkChanged() {
        for script in scripts.values { script.forget() }
        state.withLock { state in
            state.chooser.networkChanged()
            state.version &+= 1
        }
    }

    // MARK: Routes

    package var version: UInt64 { state.withLock { $0.version } }

    package func knownRoute(to origin: Origin, path: String) -> [Route.Candidate]? {
        guard let plan = try? settings.plan(for: origin) else { return nil }
        var results: [ScriptSource: ScriptResult] = [:]
        for source in plan.scripts {
            guard let result = scripts[source]?.known(ScriptView(origin, path: path)) else { return nil }
            results[source] = result
        }
        return (try? plan.route(results)).map(ordered)
    }

    package func findRoute(to origin: Origin, path: String) async throws(ParentsError) -> [Route.Candidate] {
        let plan: RoutePlan
        do throws(HostNameError) {
            plan = try settings.plan(for: origin)
        } catch {
            throw ParentsError(.malformedSetting, error.detail, hint: error.hint)
        }
        var results: [ScriptSource: ScriptResult] = [:]
        var faults: [String] = []
        for source in plan.scripts {
            switch await scripts[source]?.result(for: ScriptView(origin, path: path)) {
            case .success(let result)?: results[source] = result
            case .failure(let error)?:
                faults.append("the script \(source): \(error.reason)")
                log("--parent: the script \(source): \(error.reason)")
            case nil: break
            }
        }
        do throws(ParentsError) {
            return ordered(try plan.route(results))
        } catch {
            guard !faults.isEmpty else { throw error }
            throw ParentsError(
                error.code, "--parent: no next hop, because of \(faults.joined(separator: "; "))", hint: error.hint)
        }
    }

    private func ordered(_ route: Route) -> [Route.Candidate] {
        state.withLock { $0.chooser.order(route, at: .now) }
    }

    // MARK: Parents

    package func parentFailed(_ parent: ParentProxy) {
        let isNew = state.withLock { state in
            defer { state.chooser.parentFailed(parent, at: .now) }
            return !state.chooser.isDead(.parent(parent), at: .now)
        }
        if isNew { log("the parent \(parent) cannot be used; it is tried last for five minutes") }
    }

    package func parentAnswered(_ parent: ParentProxy) {
        state.withLock { $0.chooser.parentAnswered(parent) }
    }
}
