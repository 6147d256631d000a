// SPDX-License-Identifier: Apache-2.0

extension ClientRule {
    /// The paths of `exe:` whose file names are those of interpreters. The kernel runs the interpreter, whatever script
    /// it executes, so a line that permits one permits every script.
    var permittedInterpreters: [String] {
        permitted.compactMap { word in
            if case .executable(let path) = word, Self.isInterpreter(path) { path } else { nil }
        }
    }

    private static let interpreters: Set<String> = [
        "bash", "bun", "busybox", "dash", "deno", "dotnet", "fish", "guile", "java", "jshell", "julia", "ksh", "lua",
        "luajit", "mono", "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "ruby", "sh", "tclsh", "zsh",
    ]

    /// The version at the end of a file name does not matter: `python3.12`.
    private static func isInterpreter(_ path: String) -> Bool {
        let name = path.split(separator: "/").last ?? ""
        let stem = name.utf8.reversed().drop { (0x30...0x39).contains($0) || ".-".utf8.contains($0) }.reversed()
        return interpreters.contains(String(decoding: Array(stem), as: UTF8.self))
    }
}
