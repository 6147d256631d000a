// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignPAC
import CountersignParents
import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import CountersignRouting

func proxy(_ name: String, _ port: UInt16) throws -> ParentProxy {
    ParentProxy(.http, try HostName(canonicalizing: name, for: .forwarded), port)
}

/// A finder with the real worker process, and its scripted surroundings.
final class Scene: Sendable {
    /// The result of the next reading of a script.
    let script = Mutex(Result<ScriptContents, ScriptError>.failure(ScriptError("there is none")))
    let readings = Atomic(0)
    let stored = Mutex<[UInt8]?>(nil)
    let logged = Mutex<[String]>([])
    let alive = Mutex<Set<ParentProxy>>([])

    func finder(_ parents: [String], noProxy: String = "") throws -> RouteFinder {
        RouteFinder(
            try ParentSettings(parents: parents, noProxy: noProxy), worker: try Self.program(),
            storage: ScriptStorage(
                read: { [self] _ in stored.withLock { $0 } },
                write: { [self] _, bytes in stored.withLock { $0 = bytes } }),
            connect: { [self] parent in alive.withLock { $0.contains(parent) } },
            read: { [self] _ in
                readings.add(1, ordering: .relaxed)
                return script.withLock { $0 }
            },
            log: { [self] sentence in logged.withLock { $0.append(sentence) } })
    }

    func serve(_ text: String, lifetime: Duration = .seconds(600)) {
        script.withLock { $0 = .success(ScriptContents(Array(text.utf8), lifetime: lifetime)) }
    }

    func fail(_ error: String) { script.withLock { $0 = .failure(ScriptError(error)) } }

    private static func program() throws -> WorkerProgram {
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
            .deletingLastPathComponent().path
        for folder in [bundle, "\(Tool.repository)/.build/debug"] {
            if let path = folder.map({ "\($0)/countersign" }), access(path, X_OK) == 0 {
                return WorkerProgram(path: path)
            }
        }
        throw HarnessError("countersign is not built; run Scripts/test, which builds it")
    }
}

extension RouteFinder {
    func hops(_ url: String) async throws -> [String] {
        let url = try AbsoluteURL(parsing: url)
        return try await findRoute(to: url.origin, path: url.path).map { "\($0.hop)" }
    }

    func known(_ url: String) throws -> [String]? {
        let url = try AbsoluteURL(parsing: url)
        return knownRoute(to: url.origin, path: url.path)?.map { "\($0.hop)" }
    }
}
