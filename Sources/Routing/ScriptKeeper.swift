// SPDX-License-Identifier: Apache-2.0

import CountersignPAC
import CountersignParents
import Synchronization

/// Keeps one proxy auto-configuration script, and its results. Concurrent questions about one view are one.
final class ScriptKeeper: Sendable {
    typealias Outcome = Result<ScriptResult, ScriptError>

    private let source: ScriptSource
    private let read: @Sendable (ScriptSource) -> Result<[UInt8], ScriptError>
    private let evaluator: PACEvaluator
    private let state = Mutex(State())

    private struct State {
        var cache = DecisionCache()
        /// Counts the loads, so that a result of an earlier script is not stored.
        var load = 0
        /// Why there is no script yet; nil if there is one.
        var fault: ScriptError? = ScriptError("it has not been loaded")
        var waiting: [ScriptView: [CheckedContinuation<Outcome, Never>]] = [:]
    }

    init(
        _ source: ScriptSource, worker: WorkerProgram,
        read: @escaping @Sendable (ScriptSource) -> Result<[UInt8], ScriptError>
    ) {
        self.source = source
        self.read = read
        evaluator = PACEvaluator(program: worker, resolver: HostLookUps.resolve)
    }

    /// Reads and loads the script. If that fails, the former one stays; returns why.
    func load() async -> ScriptError? {
        let (source, read) = (source, read)
        let contents = await HostLookUps.blocking { read(source) }
        let fault: ScriptError?
        switch contents {
        case .failure(let error): fault = error
        case .success(let script):
            fault = await withCheckedContinuation { continuation in
                evaluator.load(script, clock: .now()) { result in
                    if case .failure(let error) = result {
                        continuation.resume(returning: ScriptError(error.detail))
                    } else {
                        continuation.resume(returning: nil)
                    }
                }
            }
        }
        state.withLock { state in
            guard let fault else {
                state.fault = nil
                state.load += 1
                return state.cache.removeAll()
            }
            if state.fault != nil { state.fault = fault }
        }
        return fault
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
                if let fault = state.fault { return .resume(.failure(fault)) }
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
