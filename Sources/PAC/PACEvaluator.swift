// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

// The main types of this module: a `PACEvaluator` keeps a script and asks it about URLs. The script runs in a
// `WorkerProcess`, another process without any privileges, which executes `PACWorker` with a `ScriptEngine` and the
// `Prelude`. The two exchange only `WorkerMessage`s.
//
// A script that asks for an address ends its call with `PACReply.needs`. The evaluator has the look-up made, and
// repeats the call with the result. So a slow DNS server delays only the request that needs it. Loading the script,
// which runs it once, is repeated in the same way.

/// Asks a proxy auto-configuration script. All calls go through one worker process, one after the other, on a queue of
/// their own; a worker that died is replaced for the next call.
package final class PACEvaluator: Sendable {
    package typealias Outcome = Result<PACDecision, PACError>
    /// Makes a look-up, and passes the addresses in RFC 5952's form to its second argument, once, on any thread.
    package typealias Resolver = @Sendable (PACLookUp, @escaping @Sendable ([String]) -> Void) -> Void

    private let program: WorkerProgram
    private let resolver: Resolver
    private let queue = DispatchQueue(label: "countersign.pac")
    private let state = Mutex(State())

    private struct State: ~Copyable {
        var script: LoadedScript?
        /// Has loaded ``script``.
        var worker: WorkerProcess?
    }

    /// A script, and the addresses that it asked for when it was run.
    private struct LoadedScript {
        let bytes: [UInt8]
        var request: PACRequest
    }

    package init(program: WorkerProgram = .ownExecutable, resolver: @escaping Resolver) {
        self.program = program
        self.resolver = resolver
    }

    /// Replaces the script. If the new one cannot be loaded, the former one stays. `completion` is called once, on
    /// another thread, and learns whether the script asked for an address while it was loaded.
    package func load(
        _ script: [UInt8], clock: ScriptClock, completion: @escaping @Sendable (Result<Bool, PACError>) -> Void
    ) {
        guard script.count <= PACLimits.scriptBytes else {
            return completion(
                .failure(PACError(.unreadable, "the script is longer than \(PACLimits.scriptBytes >> 20) MiB")))
        }
        guard String(validating: script, as: UTF8.self) != nil, !script.contains(0) else {
            return completion(.failure(PACError(.unreadable, "the script is not UTF-8 text")))
        }
        load(LoadedScript(bytes: script, request: PACRequest(clock: clock)), completion)
    }

    private func load(_ script: LoadedScript, _ completion: @escaping @Sendable (Result<Bool, PACError>) -> Void) {
        queue.async { [self] in
            let missing = Result { () throws(PACError) -> PACLookUp? in
                try state.withLock { (state: inout sending State) throws(PACError) -> PACLookUp? in
                    switch try Self.attempt(program, script) {
                    case .needs(let lookUp): return lookUp
                    case .loaded(let worker):
                        state.worker = consume worker
                        state.script = script
                        return nil
                    }
                }
            }
            switch missing {
            case .failure(let error): completion(.failure(error))
            case .success(nil): completion(.success(!script.request.addresses.isEmpty))
            case .success(let lookUp?):
                resolve(lookUp, for: script.request) { [self] next in
                    switch next {
                    case .failure(let error): completion(.failure(error))
                    case .success(let request): load(LoadedScript(bytes: script.bytes, request: request), completion)
                    }
                }
            }
        }
    }

    /// The script's decision about a URL. `completion` is called once, on another thread.
    package func decide(
        url: String, host: String, clock: ScriptClock, completion: @escaping @Sendable (Outcome) -> Void
    ) {
        guard url.utf8.count + host.utf8.count <= PACLimits.textBytes else {
            return completion(.failure(PACError(.wrongResult, "the URL is too long for a script")))
        }
        ask(PACRequest(target: (url, host), clock: clock), completion)
    }

    private func ask(_ request: PACRequest, _ completion: @escaping @Sendable (Outcome) -> Void) {
        queue.async { [self] in
            let reply = Result { () throws(PACError) in try self.reply(to: request) }
            switch reply {
            case .failure(let error): completion(.failure(error))
            case .success(.decided(let decision)): completion(.success(decision))
            case .success(.needs(let lookUp)):
                resolve(lookUp, for: request) { [self] next in
                    switch next {
                    case .failure(let error): completion(.failure(error))
                    case .success(let request): ask(request, completion)
                    }
                }
            }
        }
    }

    /// The request with the result of a look-up. After too many, the call continues without further look-ups.
    private func resolve(
        _ lookUp: PACLookUp, for request: PACRequest,
        _ completion: @escaping @Sendable (Result<PACRequest, PACError>) -> Void
    ) {
        var next = request
        guard request.addresses[lookUp] == nil, !request.isFull || lookUp == .ownAddresses else {
            return completion(.failure(.notAReply))
        }
        guard request.addresses.count < PACLimits.lookUps || lookUp == .ownAddresses else {
            next.isFull = true
            return completion(.success(next))
        }
        resolver(lookUp) { [next] found in
            var next = next
            next.addresses[lookUp] = found
            completion(.success(next))
        }
    }

    private func reply(to request: PACRequest) throws(PACError) -> PACReply {
        let message = WorkerMessage(.find, request.text)
        let reply = try state.withLock { (state: inout sending State) throws(PACError) in
            guard let script = state.script else { throw PACError(.noFunction, "no script is loaded") }
            if state.worker == nil {
                var again = script
                again.request.clock = request.clock
                switch try Self.attempt(program, again) {
                case .loaded(let worker): state.worker = consume worker
                case .needs:
                    // Its look-ups depend on chance or on the time.
                    throw PACError(.thrown, "the script asked for other hosts when it was loaded again")
                }
            }
            do throws(PACError) {
                guard let reply = try state.worker?.exchange(message) else {
                    throw PACError(.cannotStart, "no script is loaded")
                }
                return reply
            } catch {
                // Killed, if it is not dead. The next call starts another one.
                state.worker = nil
                throw error
            }
        }
        switch reply.kind {
        case .reply: return try PACReply(reply.content)
        case .fault:
            let error = Self.error(reply)
            // Ends the worker, so that the next call does not begin with the remains of this one.
            if error.code == .outOfMemory { state.withLock { $0.worker = nil } }
            throw error
        case .ready, .loaded, .load, .find: throw .notAReply
        }
    }

    private enum Attempt: ~Copyable {
        case loaded(WorkerProcess)
        /// The attempt has to be repeated with this.
        case needs(PACLookUp)
    }

    /// Starts a worker and has it load the script.
    private static func attempt(_ program: WorkerProgram, _ script: LoadedScript) throws(PACError) -> Attempt {
        let worker = try WorkerProcess.start(program)
        let reply = try worker.exchange(WorkerMessage(.load, script.request.text + [0] + script.bytes))
        switch reply.kind {
        case .loaded: return .loaded(worker)
        case .reply:
            guard case .needs(let lookUp) = try PACReply(reply.content) else { throw .notAReply }
            return .needs(lookUp)
        case .ready, .load, .find, .fault: throw error(reply)
        }
    }

    private static func error(_ reply: WorkerMessage) -> PACError {
        guard reply.kind == .fault, let fault = ScriptFault(reply.content) else { return .notAReply }
        return PACError(fault)
    }
}
