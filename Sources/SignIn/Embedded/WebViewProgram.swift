// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where `countersign-webview` is installed.
enum WebViewProgram {
    static let name = "countersign-webview"
    static let variable = "COUNTERSIGN_WEBVIEW"

    /// The program that the variable names; else the one in the folder of this process's program; else the first in
    /// `PATH`. Throws `noAgent`.
    static func path(in environment: [String: String], folder: String? = WebViewProgram.ownFolder) throws(SignInError)
        -> String
    {
        if let named = environment[variable], !named.isEmpty {
            guard named.hasPrefix("/"), access(named, X_OK) == 0 else {
                throw SignInError(
                    .noAgent, "\(variable) names \(named.debugDescription), which is not the path of a program")
            }
            return named
        }
        if let beside = folder.map({ "\($0)/\(name)" }), access(beside, X_OK) == 0 { return beside }
        guard let found = AgentProcess.path(of: name, in: environment) else {
            throw SignInError(
                .noAgent, "the web view \(name) is not installed",
                hint: "Documentation/EmbeddedAgent.md describes its installation; or use another --user-agent")
        }
        return found
    }

    /// The folder of the program that this process runs.
    private static var ownFolder: String? {
        guard let program = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(program) }
        let path = String(cString: program)
        return path.lastIndex(of: "/").map { String(path[..<$0]) }
    }
}
