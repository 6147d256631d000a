// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignParents
import CountersignRouting
import FoundationEssentials

/// `--parent` and `--no-proxy`, for commands that run a proxy or say where it goes.
struct ParentOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Go out through this parent proxy: http://HOST:PORT, socks5://HOST, socks5h://HOST, pac:FILE, system (the "
                + "proxy variables) or direct. May be repeated; the next one is used if one cannot be reached. "
                + "(default: $COUNTERSIGN_PARENT, else direct)",
            valueName: "parent"))
    var parent: [String] = []

    @Option(
        help: ArgumentHelp(
            "Go directly to these hosts, as curl's option of this name. (default: $COUNTERSIGN_NO_PROXY)",
            valueName: "hosts"))
    var noProxy: String?

    /// Nil if every connection is direct. Throws ``ParentsError``.
    func finder() throws -> RouteFinder? {
        let environment = ProcessInfo.processInfo.environment
        let parents = parent.isEmpty ? environment["COUNTERSIGN_PARENT"].map { [$0] } ?? [] : parent
        let settings = try ParentSettings(
            parents: parents.filter { !$0.isEmpty },
            noProxy: noProxy ?? environment["COUNTERSIGN_NO_PROXY"] ?? "", environment: environment)
        guard !settings.sources.isEmpty else { return nil }
        for source in settings.sources {
            switch source {
            case .script(.url), .script(.wpad):
                throw ParentsError(
                    .unsupportedKind, "--parent: a script is read from a file only, not from the network",
                    hint: "download it, and pass --parent pac:FILE")
            case .hop(.parent(let parent)) where parent.kind == .https:
                throw ParentsError(
                    .unsupportedKind, "--parent: \(parent): TLS to a parent is not supported",
                    hint: "use http:// if the parent has a port without TLS")
            case .hop, .script, .system: break
            }
        }
        return RouteFinder(settings, read: Self.read) { Console.log("warning", $0) }
    }

    private static func read(_ source: ScriptSource) -> Result<[UInt8], ScriptError> {
        guard case .file(let path) = source else { return .failure(ScriptError("it is not a file")) }
        do {
            return .success(try HomeFile(path: path).read(upTo: 1 << 20))
        } catch {
            return .failure(ScriptError("\(error.detail)"))
        }
    }
}
