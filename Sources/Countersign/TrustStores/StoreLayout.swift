// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where the trust stores of a machine and of its user are, and what this process may do with them.
package struct StoreLayout: Sendable {
    /// How files of the system are written.
    package enum Privilege: Equatable, Sendable {
        /// This process is root.
        case own
        /// Through `sudo`, which asks on the terminal.
        case sudo
        /// Not at all.
        case none
    }

    /// What stands before every path of the system: nothing, or the folder of another system's tree.
    let root: String
    /// The user's home folder.
    let home: String
    let environment: [String: String]
    let privilege: Privilege
    let isWritable: @Sendable (String) -> Bool

    package init(
        root: String = "/", home: String, environment: [String: String], privilege: Privilege,
        isWritable: @escaping @Sendable (String) -> Bool = { access($0, W_OK) == 0 }
    ) {
        self.root = root == "/" ? "" : root
        self.home = home
        self.environment = environment
        self.privilege = privilege
        self.isWritable = isWritable
    }

    /// This machine's. Throws where the user has no home folder.
    package static func ofThisMachine(
        environment: [String: String], hasTerminal: Bool
    ) throws(CountersignError) -> StoreLayout {
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw CountersignError(.environment, "there is no home folder to look into: HOME is not set")
        }
        let layout = StoreLayout(home: home, environment: environment, privilege: .sudo)
        let privilege: Privilege =
            geteuid() == 0 ? .own : hasTerminal && layout.program("sudo") != nil ? .sudo : .none
        return StoreLayout(home: home, environment: environment, privilege: privilege)
    }

    /// A path of the system.
    func path(_ absolute: String) -> String { root + absolute }

    /// The path of a program, from `PATH` and the folders of system programs, which not every user's `PATH` has.
    func program(_ name: String) -> String? {
        let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (folders + ["/usr/local/sbin", "/usr/sbin", "/sbin"]).lazy.map { "\($0)/\(name)" }.first {
            access($0, X_OK) == 0 && !Self.isFolder($0)
        }
    }

    /// The path, without links, of a program that belongs to the system whose stores these are.
    func installedProgram(_ name: String) -> String? {
        program(name).flatMap(Self.resolved).flatMap { root.isEmpty || $0.hasPrefix("\(root)/") ? $0 : nil }
    }

    // MARK: Files

    static func isFolder(_ path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFDIR
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// The path without symbolic links, or nil where there is nothing.
    static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The names in a folder, but for those with a dot before them, in the order of their bytes; none where it cannot be read.
    static func names(in folder: String) -> [String] {
        guard let entries = opendir(folder) else { return [] }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
