// SPDX-License-Identifier: Apache-2.0

package import CountersignHome
import Glibc

/// The locations of the trust stores of a machine and its user, and this process's permissions for them.
package struct StoreLayout: Sendable {
    /// How system files can be written.
    package enum Privilege: Equatable, Sendable {
        /// This process is root.
        case own
        /// Through `sudo`, which asks on the terminal.
        case sudo
        /// Not at all.
        case none
    }

    /// The prefix of all system paths: empty, or the folder of another system's tree.
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

    /// The layout of this machine. Throws if the user has no home folder.
    package static func ofThisMachine(
        environment: [String: String], hasTerminal: Bool
    ) throws(CountersignError) -> StoreLayout {
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw CountersignError(.environment, "there is no home folder: HOME is not set")
        }
        let layout = StoreLayout(home: home, environment: environment, privilege: .sudo)
        let privilege: Privilege =
            geteuid() == 0 ? .own : hasTerminal && layout.program("sudo") != nil ? .sudo : .none
        return StoreLayout(home: home, environment: environment, privilege: privilege)
    }

    /// A system path, with the prefix.
    func path(_ absolute: String) -> String { root + absolute }

    /// The path of a program. Searches `PATH`, and the folders of system programs, which some users' `PATH` lacks.
    func program(_ name: String) -> String? {
        let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (folders + ["/usr/local/sbin", "/usr/sbin", "/sbin"]).lazy.map { "\($0)/\(name)" }.first {
            access($0, X_OK) == 0 && !Self.isFolder($0)
        }
    }

    /// The resolved path of a program, if it belongs to this layout's system.
    func installedProgram(_ name: String) -> String? {
        program(name).flatMap(HomeFile.resolved).flatMap { root.isEmpty || $0.hasPrefix("\(root)/") ? $0 : nil }
    }

    // MARK: Files

    static func isFolder(_ path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFDIR
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// The names in a folder, except those that begin with a dot, in byte order. Empty if the folder cannot be read.
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
