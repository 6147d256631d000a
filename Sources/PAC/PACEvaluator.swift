// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

// The main types of this module: a `PACEvaluator` keeps a script and asks it about URLs. The script runs in a
// `WorkerProcess`, another process without any right, which executes `PACWorker` with a `ScriptEngine` and the
// `Prelude`. Nothing goes between the two but `WorkerMessage`s.
//
// A script that asks for an address ends its call with `PACReply.needs`. The evaluator has the look-up made, and
// repeats the call with the result. So a slow DNS server delays only the request that needs it.

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
        var script: [UInt8]?
        /// Has loaded ``script``.
        var worker: WorkerProcess?
    }

    package init(program: WorkerProgram = .ownExecutable, resolver: @escaping Resolver) {
        self.program = program
        self.resolver = resolver
    }

    /// Replaces the script. If the new one cannot be loaded, the former one stays. `completion` is called once, on
    /// another thread.
    package func load(
        _ script: [UInt8], clock: ScriptClock, completion: @escaping @Sendable (Result<Void, PACError>) -> Void
    ) {
        queue.async { [self] in
            completion(
                Result { () throws(PACError) in
                    guard script.count <= PACLimits.scriptBytes else {
                        throw PACError(.unreadable, "the script is longer than \(PACLimits.scriptBytes >> 20) MiB")
                    }
                    guard String(validating: script, as: UTF8.self) != nil, !script.contains(0) else {
                        throw PACError(.unreadable, "the script is not UTF-8 text")
                    }
                    try state.withLock { (state: inout sending State) throws(PACError) in
                        state.worker = try Self.worker(program, script, clock)
                        state.script = script
                    }
                })
        }
    }

    /// The script's decision about a URL. `completion` is called once, on another thread.
    package func decide(
        url: String, host: String, clock: ScriptClock, completion: @escaping @Sendable (Outcome) -> Void
    ) {
        guard url.utf8.count + host.utf8.count <= PACLimits.textBytes else {
            return completion(.failure(PACError(.wrongResult, "the URL is too long for a script")))
        }
        ask(PACRequest(url: url, host: host, clock: clock), completion)
    }

    private func ask(_ request: PACRequest, _ completion: @escaping @Sendable (Outcome) -> Void) {
        queue.async { [self] in
            let reply = Result { () throws(PACError) in try self.reply(to: request) }
            switch reply {
            case .failure(let error): completion(.failure(error))
            case .success(.decided(let decision)): completion(.success(decision))
            case .success(.needs(let lookUp)):
                guard request.addresses.count < PACLimits.lookUps, request.addresses[lookUp] == nil else {
                    return completion(
                        .failure(
                            PACError(
                                .tooManyLookUps,
                                "the script asked for more than \(PACLimits.lookUps) hosts in one call")))
                }
                resolver(lookUp) { [self] found in
                    var next = request
                    next.addresses[lookUp] = found
                    ask(next, completion)
                }
            }
        }
    }

    private func reply(to request: PACRequest) throws(PACError) -> PACReply {
        let message = WorkerMessage(.find, request.text)
        let reply = try state.withLock { (state: inout sending State) throws(PACError) in
            guard let script = state.script else { throw PACError(.noFunction, "no script is loaded") }
            if state.worker == nil { state.worker = try Self.worker(program, script, request.clock) }
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
        case .fault: throw Self.error(reply)
        case .ready, .loaded, .load, .find:
            throw PACError(.crashed, "the script's process sent something else than a reply")
        }
    }

    /// A worker that has loaded the script.
    private static func worker(
        _ program: WorkerProgram, _ script: [UInt8], _ clock: ScriptClock
    ) throws(PACError) -> WorkerProcess {
        let worker = try WorkerProcess.start(program)
        let reply = try worker.exchange(WorkerMessage(.load, PACRequest.text(clock) + [0] + script))
        guard reply.kind == .loaded else { throw error(reply) }
        return worker
    }

    private static func error(_ reply: WorkerMessage) -> PACError {
        guard reply.kind == .fault, let fault = ScriptFault(reply.content) else {
            return PACError(.crashed, "the script's process sent something else than a reply")
        }
        return PACError(fault)
    }
}
