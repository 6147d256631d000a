// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignPAC

/// Thursday, 2026-01-15 12:30:45 UTC.
let thursday = ScriptClock(milliseconds: 1_768_480_245_000, offsetMinutes: 0)

/// An evaluator with the real worker process, and the look-ups that it has made.
final class Scripts: Sendable {
    let evaluator: PACEvaluator
    private let known: [String: [String]]
    let lookUps = LookUps()

    /// Names without an entry have no address. The machine's own are those of the empty name.
    init(_ known: [String: [String]] = [:], engine: EngineKind = .duktape) throws {
        self.known = known
        let lookUps = lookUps
        evaluator = PACEvaluator(program: try Self.program(engine)) { lookUp, found in
            lookUps.append(lookUp)
            switch lookUp {
            case .name(let name): found(known[name] ?? [])
            case .ownAddresses: found(known[""] ?? [])
            }
        }
    }

    static func program(_ engine: EngineKind) throws -> WorkerProgram {
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
            .deletingLastPathComponent().path
        for folder in [bundle, "\(Tool.repository)/.build/debug"] {
            if let path = folder.map({ "\($0)/countersign" }), access(path, X_OK) == 0 {
                return WorkerProgram(path: path, engine: engine)
            }
        }
        throw HarnessError("countersign is not built; run Scripts/test, which builds it")
    }

    /// Whether the script asked for an address.
    @discardableResult
    func load(_ script: String, clock: ScriptClock = thursday) async throws -> Bool {
        try await withCheckedContinuation { continuation in
            evaluator.load(Array(script.utf8), clock: clock) { continuation.resume(returning: $0) }
        }.get()
    }

    func decide(
        _ url: String = "http://www.example.com/", _ host: String = "www.example.com", clock: ScriptClock = thursday
    ) async throws -> PACDecision {
        try await withCheckedContinuation { continuation in
            evaluator.decide(url: url, host: host, clock: clock) { continuation.resume(returning: $0) }
        }.get()
    }

    /// The value of a JavaScript expression in the function, as a string.
    func value(of expression: String, clock: ScriptClock = thursday) async throws -> String {
        try await load("function FindProxyForURL(url, host) { return String(\(expression)); }")
        return try await decide(clock: clock).result
    }
}

/// The error of `body`; nil if it succeeds.
func pacError(_ body: () async throws -> Void) async -> PACError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? PACError
    }
}
