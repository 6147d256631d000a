// SPDX-License-Identifier: Apache-2.0

import CountersignPAC
import CountersignParents
import Synchronization

/// Keeps one proxy auto-configuration script, and its results. Concurrent questions about one view are one.
final class ScriptKeeper: Sendable {
    typealias Outcome = Result<ScriptResult, ScriptError>

    /// The result of an attempt to load the script.
    struct Loaded: Equatable {
        let isNew: Bool
        let fault: ScriptError?
    }

    private let source: ScriptSource
    private let read: ScriptReader
    private let storage: ScriptStorage
    private let evaluator: PACEvaluator
    private let state = Mutex(State())

    private struct State {
        var cache = DecisionCache()
        /// Counts the loads, so that a result of an earlier script is not stored.
        var load = 0
        /// The loaded script; nil before the first success.
        var script: [UInt8]?
        /// Whether the script asked for addresses when it was run, which hold for one network.
        var usesAddresses = false
        /// Why no script is loaded.
        var fault = ScriptError("it has not been loaded")
        var due = ContinuousClock.now
        var waiting: [ScriptView: [CheckedContinuation<Outcome, Never>]] = [:]
    }

    init(_ source: ScriptSource, worker: WorkerProgram, storage: ScriptStorage, read: @escaping ScriptReader) {
        self.source = source
        self.read = read
        self.storage = storage
        evaluator = PACEvaluator(program: worker, resolver: HostLookUps.resolve)
    }

    /// Reads and loads the script. If that fails, the former one stays, or the stored one takes its place. With
    /// `afresh`, the script is run again even if it is the same, if that may have another outcome.
    func load(afresh: Bool = false) async -> Loaded {
        let (source, read) = (source, read)
        let fault: ScriptError
        switch await HostLookUps.blocking({ read(source) }) {
        case .failure(let error): fault = error
        case .success(let contents):
            guard let error = await load(contents.bytes, afresh: afresh) else {
                let storage = storage
                await HostLookUps.blocking { storage.write(source, contents.bytes) }
                return begin(with: contents.bytes, lifetime: contents.lifetime)
            }
            fault = error
        }
        if state.withLock({ $0.script == nil }) {
            let storage = storage
            if let stored = await HostLookUps.blocking({ storage.read(source) }), await load(stored) == nil {
                let isNew = begin(with: stored, lifetime: ScriptContents.retry).isNew
                return Loaded(isNew: isNew, fault: ScriptError("\(fault.reason); the last good copy is used"))
            }
        }
        return state.withLock { state in
            state.due = .now + ScriptContents.retry
            state.fault = fault
            return Loaded(
                isNew: false,
                fault: state.script == nil ? fault : ScriptError("\(fault.reason); the last good copy is used"))
        }
    }

    /// Whether the script has to be read again.
    func isDue(at now: ContinuousClock.Instant) -> Bool { state.withLock { $0.due <= now } }

    /// Why the engine does not load it; nil if it does. The script that is loaded already is not loaded again.
    private func load(_ script: [UInt8], afresh: Bool = false) async -> ScriptError? {
        if state.withLock({ $0.script == script && !(afresh && $0.usesAddresses) }) { return nil }
        let result = await withCheckedContinuation { continuation in
            evaluator.load(script, clock: .now()) { continuation.resume(returning: $0) }
        }
        switch result {
        case .failure(let error): return ScriptError(error.detail)
        case .success(let usesAddresses):
            state.withLock { $0.usesAddresses = usesAddresses }
            return nil
        }
    }

    private func begin(with script: [UInt8], lifetime: Duration) -> Loaded {
        state.withLock { state in
            state.due = .now + lifetime
            guard state.script != script else { return Loaded(isNew: false, fault: nil) }
            state.script = script
            state.load += 1
            state.cache.removeAll()
            return Loaded(isNew: true, fault: nil)
        }
    }

    /// Results may have changed with the network.
    func forget() {
        state.withLock { state in
            state.load += 1
            state.cache.removeAll()
        }
    }

    func known(_ view: ScriptView) -> ScriptResult? {
        state.withLock { $0.cache.result(for: view, at: .now) }
    }

    func result(for view: ScriptView) async -> Outcome {
        await withCheckedContinuation { continuation in
            enum Next {
                case resume(Outcome)
                case ask(load: Int)
                case wait
            }
            let next = state.withLock { state -> Next in
                if let known = state.cache.result(for: view, at: .now) { return .resume(.success(known)) }
                guard state.script != nil else { return .resume(.failure(state.fault)) }
                let isFirst = state.waiting[view] == nil
                state.waiting[view, default: []].append(continuation)
                return isFirst ? .ask(load: state.load) : .wait
            }
            switch next {
            case .resume(let outcome): continuation.resume(returning: outcome)
            case .ask(let load): ask(view, load)
            case .wait: break
            }
        }
    }

    private func ask(_ view: ScriptView, _ load: Int) {
        evaluator.decide(url: view.url, host: view.host, clock: .now()) { [self] reply in
            let outcome: Outcome
            var usesClock = false
            switch reply {
            case .failure(let error): outcome = .failure(ScriptError(error.detail))
            case .success(let decision):
                usesClock = decision.usesClock
                do throws(ParentsError) {
                    outcome = .success(try ScriptResult(parsing: decision.result, from: source))
                } catch {
                    outcome = .failure(ScriptError(error.detail))
                }
            }
            let waiting = state.withLock { state in
                if case .success(let result) = outcome, state.load == load {
                    state.cache.store(result, for: view, usesClock: usesClock, at: .now)
                }
                return state.waiting.removeValue(forKey: view) ?? []
            }
            for continuation in waiting { continuation.resume(returning: outcome) }
        }
    }
}
