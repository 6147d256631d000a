// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignPAC
package import CountersignParents
import Synchronization

// The main types of this module: a `RouteFinder` finds the next hops of requests from the settings. It has a
// `ScriptKeeper` for each proxy auto-configuration script, which loads the script and asks it, and `HostLookUps` makes
// the look-ups that scripts ask for.

/// Finds the next hops of requests, from the settings about parent proxies, their scripts and the state of the parents.
package final class RouteFinder: RouteFinding {
    package let settings: ParentSettings
    private let scripts: [ScriptSource: ScriptKeeper]
    private let state = Mutex(State())
    private let connect: @Sendable (ParentProxy) async -> Bool
    private let log: @Sendable (String) -> Void

    private struct State {
        var chooser = RouteChooser()
        var version: UInt64 = 0
        var recent = RecentRoutes()
        /// The sentence that was logged last about each script.
        var faults: [ScriptSource: String] = [:]
        /// The sentences that were logged about elements of results that cannot be used.
        var skipped: Set<String> = []
    }

    /// An error of `read` is one sentence. `storage` keeps the last good copies. `connect` returns whether a parent
    /// accepts a connection. `log` gets a sentence about each failure in the background.
    package init(
        _ settings: ParentSettings, worker: WorkerProgram = .ownExecutable, storage: ScriptStorage = .none,
        connect: @escaping @Sendable (ParentProxy) async -> Bool = HostLookUps.accepts,
        read: @escaping ScriptReader, log: @escaping @Sendable (String) -> Void
    ) {
        self.settings = settings
        self.connect = connect
        self.log = log
        var scripts: [ScriptSource: ScriptKeeper] = [:]
        for case .script(let source) in settings.sources {
            scripts[source] = ScriptKeeper(source, worker: worker, storage: storage, read: read)
        }
        self.scripts = scripts
    }

    /// Whether every connection is direct.
    package var isDirect: Bool { settings.sources.isEmpty }

    /// Loads the scripts, or loads them again, and forgets all findings about the network. A script that cannot be
    /// loaded keeps its former contents. Returns a sentence for each that has a fault.
    @discardableResult
    package func load() async -> [String] {
        var faults: [String] = []
        for (source, script) in scripts {
            let sentence = await script.load(afresh: true).fault.map { Self.sentence(source, $0) }
            state.withLock { $0.faults[source] = sentence }
            if let sentence { faults.append(sentence) }
        }
        forgetNetwork()
        return faults.sorted()
    }

    /// Forgets the findings about parents and the results of look-ups.
    package func forgetNetwork() {
        for script in scripts.values { script.forget() }
        state.withLock { state in
            state.chooser.networkChanged()
            state.version &+= 1
            state.recent.removeAll()
        }
    }

    /// Logs a sentence unless it is the last one about the script.
    private func logOnce(_ sentence: String?, about source: ScriptSource) {
        let isNew = state.withLock { state in
            defer { state.faults[source] = sentence }
            return state.faults[source] != sentence
        }
        if isNew, let sentence { log(sentence) }
    }

    /// Logs each sentence once, and not without end.
    private func logSkipped(_ sentences: [String]) {
        for sentence in sentences {
            let isNew = state.withLock { $0.skipped.count < 100 && $0.skipped.insert(sentence).inserted }
            if isNew { log("--parent: \(sentence); it is skipped") }
        }
    }

    private static func sentence(_ source: ScriptSource, _ error: ScriptError) -> String {
        "--parent: the script \(source): \(error.reason)"
    }

    /// What is known now, without asking anybody.
    package var report: RouteReport {
        let (failed, faults) = state.withLock { ($0.chooser.failed(at: .now), $0.faults) }
        return RouteReport(settings.sources, failed: failed, faults: faults)
    }

    // MARK: In the background

    /// Reads scripts again and probes dead parents, and notices changes of the network, until the task is cancelled.
    package func run() async {
        let watch = NetworkWatch { [weak self] in
            guard let self else { return }
            log("the network has changed; routes are computed again")
            forgetNetwork()
            Task { for fault in await self.load() { self.log(fault) } }
        }
        defer { watch?.stop() }
        while (try? await Task.sleep(for: Self.interval)) != nil { await keepFresh(at: .now) }
    }

    private static let interval = Duration.seconds(15)

    /// Performs the work that is due. A fault of a script is logged once, until it changes.
    package func keepFresh(at now: ContinuousClock.Instant) async {
        for (source, script) in scripts where script.isDue(at: now) {
            let loaded = await script.load()
            if loaded.isNew {
                state.withLock { state in
                    state.version &+= 1
                    state.recent.removeAll()
                }
            }
            logOnce(loaded.fault.map { Self.sentence(source, $0) }, about: source)
        }
        for parent in state.withLock({ $0.chooser.probesDue(at: now) }) where await connect(parent) {
            log("the parent \(parent) can be used again")
            parentAnswered(parent)
        }
    }

    // MARK: Routes

    package var version: UInt64 { state.withLock { $0.version } }

    package func knownRoute(to origin: Origin, path: String) -> [Route.Candidate]? {
        let now = ContinuousClock.now
        let key = RecentRoutes.Key(origin: origin, path: scripts.isEmpty || origin.scheme != .http ? "" : path)
        let (recent, generation) = state.withLock {
            ($0.recent.candidates(for: key, at: now), $0.recent.generation)
        }
        if let recent { return recent }
        guard let plan = try? settings.plan(for: origin) else { return nil }
        var results: [ScriptSource: ScriptResult] = [:]
        for source in plan.scripts {
            guard let result = scripts[source]?.known(ScriptView(origin, path: path)) else { return nil }
            results[source] = result
        }
        guard let candidates = (try? plan.route(results)).map(ordered) else { return nil }
        state.withLock { $0.recent.store(candidates, for: key, foundIn: generation, at: now) }
        return candidates
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
            case .success(let result)?:
                results[source] = result
                logSkipped(result.skipped)
            case .failure(let error)?:
                faults.append("the script \(source): \(error.reason)")
                logOnce(Self.sentence(source, error), about: source)
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
            guard !state.chooser.isDead(.parent(parent), at: .now) else { return false }
            state.chooser.parentFailed(parent, at: .now)
            state.recent.removeAll()
            return true
        }
        if isNew { log("the parent \(parent) cannot be used; it is tried last for five minutes") }
    }

    package func parentAnswered(_ parent: ParentProxy) {
        state.withLock { state in
            if state.chooser.isDead(.parent(parent), at: .now) { state.recent.removeAll() }
            state.chooser.parentAnswered(parent)
        }
    }
}
