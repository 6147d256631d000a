// SPDX-License-Identifier: Apache-2.0

import CountersignHome

/// What a command in a sandbox sees, as arguments of bwrap(1).
///
/// The sandbox begins empty, and only what a command needs is added. A read-only view of everything would not do: a
/// Unix-domain socket accepts connections in it, such as that of a container runtime in `/var`.
struct SandboxPlan {
    /// A folder of the system that the command can read.
    struct SystemFolder: Equatable {
        let path: String
        /// The text of the symbolic link if that is what it is; the folder it leads to is another one of the list.
        var link: String?
    }

    /// What there is on this machine. All paths are absolute and without symbolic links, unless they say otherwise.
    struct Surroundings {
        /// Those of ``systemFolders`` that are there.
        var system: [SystemFolder]
        /// The person's home folders: `$HOME`, also as it is written, and that of the user database.
        var personFolders: [String]
        /// The homes of Countersign that are there: the one in use and the one that is assumed.
        var homes: [String]
        /// The working folder.
        var workingFolder: String
        /// This program.
        var executable: String
    }

    let surroundings: Surroundings
    /// Further files and folders that the command can read.
    var readable: [String] = []
    /// Those that it can also change.
    var writable: [String] = []
    /// The files of the command's environment, which are shown even if they are in a home of Countersign.
    var shown: [String] = []

    /// The names of folders in `/` that have programs and their configuration, and nothing of the person's.
    static let systemFolders = [
        "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu", "snap",
    ]
    /// This program inside.
    static let innerExecutable = "/run/countersign-door"
    private static let temporary = ["/tmp", "/var/tmp", "/run"]
    private static let kernel = ["/proc", "/dev", "/sys"]
    /// root may change them without a capability, for the whole machine: kernel.core_pattern names a program that the
    /// kernel runs.
    private static let kernelSettings = [
        "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi",
        "/proc/mtrr", "/proc/pressure",
    ]

    /// The arguments of bwrap that run `command`. `filter` is the descriptor of the filter of system calls. Throws
    /// ``CountersignError`` if something would be shown that a sandbox never shows.
    func arguments(running command: [String], filter: Int32) throws(CountersignError) -> [String] {
        try check(surroundings.workingFolder, "the working folder", hint: "change to the folder of a project")
        for path in readable { try check(path, "--sandbox-read", hint: Self.narrower) }
        for path in writable { try check(path, "--sandbox-write", hint: Self.narrower) }
        return namespaces + ["--seccomp", "\(filter)"] + system + emptyFolders + ownFolders + hiddenHomes
            + shown.flatMap { ["--ro-bind", $0, $0] }
            + ["--ro-bind", surroundings.executable, Self.innerExecutable, "--remount-ro", "/"]
            + ["--chdir", surroundings.workingFolder, "--"] + command
    }

    private static let narrower = "name the files and folders that the command needs"

    // MARK: The arguments

    /// root, too, gets a user namespace and no capability, with which it could take away what covers a folder.
    private var namespaces: [String] {
        ["--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"]
    }

    private var system: [String] {
        surroundings.system.flatMap { folder in
            folder.link.map { ["--symlink", $0, folder.path] } ?? ["--ro-bind", folder.path, folder.path]
        } + ["--proc", "/proc"] + Self.kernelSettings.flatMap { ["--ro-bind-try", $0, $0] } + ["--dev", "/dev"]
    }

    private var emptyFolders: [String] {
        let open = Self.temporary.flatMap { ["--perms", "1777", "--tmpfs", $0] }
        return open + ["--symlink", "/run", "/var/run"]
            + surroundings.personFolders.filter { $0 != "/" }.flatMap { ["--perms", "0700", "--tmpfs", $0] }
    }

    /// A folder before those in it, so that each has the rights that were asked for it.
    private var ownFolders: [String] {
        let changed = Set(writable + [surroundings.workingFolder])
        return changed.union(readable).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            .flatMap { [changed.contains($0) ? "--bind" : "--ro-bind", $0, $0] }
    }

    private var hiddenHomes: [String] {
        let visible = surroundings.system.map(\.path) + readable + writable + [surroundings.workingFolder]
        return surroundings.homes.filter { home in visible.contains { Self.isInside(home, $0) } }
            .flatMap { ["--perms", "0700", "--tmpfs", $0] }
    }

    // MARK: What is never shown

    private func check(_ path: String, _ what: String, hint: String) throws(CountersignError) {
        func fault(_ reason: String, _ hint: String = hint) -> CountersignError {
            CountersignError(.refused, "\(what) \(path) cannot be in a sandbox: \(reason)", hint: hint)
        }
        if let home = surroundings.homes.first(where: { Self.isInside(path, $0) }) {
            throw fault("it is in the home of Countersign, \(home)")
        }
        if let folder = surroundings.personFolders.first(where: { Self.isInside($0, path) }) {
            throw fault(folder == path ? "it is your home folder" : "your home folder is in it")
        }
        if Self.kernel.contains(where: { Self.isInside(path, $0) }) { throw fault("the kernel makes its files") }
        let others = Self.temporary + Self.kernel + surroundings.system.map(\.path) + ["/home", "/var"]
        if let folder = others.first(where: { Self.isInside($0, path) }) {
            throw fault(folder == path ? "it is a folder of the system" : "it has folders of the system")
        }
    }

    /// Whether `path` is `folder`, or in it.
    static func isInside(_ path: String, _ folder: String) -> Bool {
        path == folder || folder == "/" || path.hasPrefix("\(folder)/")
    }
}
