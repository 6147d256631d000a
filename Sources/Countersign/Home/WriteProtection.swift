// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Glibc

/// Refuses a home whose list of sites or trust anchors other users could change, as ssh refuses such a `~/.ssh`.
///
/// The home, `AllowedSites`, `Certs`, `Certs/anchors` and their files must belong to this user, to root or, for root,
/// to the user who ran sudo, and nobody else may write to them. The target of a symbolic link is checked with every
/// folder above it, up to the home or the root of the file system. The folders above the home are not checked.
///
/// Write permission for a group is accepted if the group is the owner's private group, as Debian's ssh does: with
/// umask 002, which is the default on systems with such groups, git and editors create all files with it.
struct WriteProtection {
    private let home: Home
    private let user: uid_t
    private let owners: [uid_t]
    private let isPrivateGroup: (_ group: gid_t, _ owner: uid_t) -> Bool

    /// `sudoUser` is the user who ran sudo, which only counts for root.
    init(
        home: Home, user: uid_t = geteuid(), sudoUser: uid_t? = Self.sudoUser,
        isPrivateGroup: @escaping (_ group: gid_t, _ owner: uid_t) -> Bool = PrivateGroup.isPrivate
    ) {
        self.home = home
        self.user = user
        owners = [user, 0] + (user == 0 ? [sudoUser].compactMap(\.self) : [])
        self.isPrivateGroup = isPrivateGroup
    }

    private static var sudoUser: uid_t? { getenv("SUDO_UID").flatMap { uid_t(String(cString: $0)) } }

    /// Throws `configuration` for the first file or folder that others can write to. The hint has the commands that
    /// repair all of them. Missing files are accepted.
    func check() throws(CountersignError) {
        var faults: [Fault] = []
        for (name, path) in checkedPaths() {
            for fault in self.faults(of: path, name) where !faults.contains(where: { $0.path == fault.path }) {
                faults.append(fault)
            }
        }
        guard let first = faults.first else { return }
        throw CountersignError(
            .configuration, "\(first.name) \(first.reason), who could change which sites receive credentials",
            hint: Self.hint(for: faults, user: user))
    }

    private func checkedPaths() -> [(name: String, path: String)] {
        var found = [("the home \(home.path)", home.path)]
        for (folder, suffix) in [(Home.sitesFolder, ".sites"), ("Certs", nil), (Home.anchorsFolder, ".pem")] {
            found.append(("the folder \(folder)", home.file(folder).path))
            guard let suffix else { continue }
            // If the folder cannot be read, reading its files reports that.
            found += ((try? home.files(in: folder, suffix: suffix)) ?? []).map { ($0.name, $0.path) }
        }
        return found
    }

    // MARK: Faults

    private struct Fault {
        let name: String
        let path: String
        let reason: String
        /// Whether the owner is wrong, rather than the mode.
        let isForeign: Bool
        /// The symbolic link that leads to a folder above its target.
        var link: String?
    }

    private func faults(of path: String, _ name: String) -> [Fault] {
        var found = stat()
        guard lstat(path, &found) == 0 else { return [] }
        guard found.st_mode & S_IFMT == S_IFLNK else {
            return fault(of: found, path, name).map { [$0] } ?? []
        }
        guard let target = Self.resolved(path) else { return [] }
        var faults: [Fault] = []
        let end = Self.resolved(home.path)
        var current = target
        while stat(current, &found) == 0 {
            // Others cannot replace what is in a sticky folder, such as /tmp.
            let isHarmless = current != target && found.st_mode & S_ISVTX != 0
            if !isHarmless, var fault = fault(of: found, current, current) {
                fault.link = path
                faults.append(fault)
            }
            if current == end || current == "/" { break }
            current = HomeFile.folder(of: current)
        }
        return faults
    }

    private func fault(of found: stat, _ path: String, _ name: String) -> Fault? {
        if !owners.contains(found.st_uid) {
            let owner = SystemAccounts.userName(of: found.st_uid)
            return Fault(name: name, path: path, reason: "belongs to user \(owner)", isForeign: true)
        }
        if found.st_mode & S_IWOTH != 0 {
            return Fault(name: name, path: path, reason: "can be written by every user", isForeign: false)
        }
        if found.st_mode & S_IWGRP != 0,
            Self.hasAccessList(path) || !isPrivateGroup(found.st_gid, found.st_uid)
        {
            let group = SystemAccounts.groupName(of: found.st_gid)
            return Fault(
                name: name, path: path, reason: "can be written by the members of group \(group)", isForeign: false)
        }
        return nil
    }

    /// Whether the file has an access control list. The group's bits are then the largest permission of any entry.
    private static func hasAccessList(_ path: String) -> Bool {
        csn_getxattr_size(path, "system.posix_acl_access") > 0
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    // MARK: Repairing

    private static func hint(for faults: [Fault], user: uid_t) -> String {
        func words(_ paths: [String]) -> String { paths.map(quoted).joined(separator: " ") }
        var commands: [String] = []
        let foreign = faults.filter { $0.isForeign && $0.link == nil }.map(\.path)
        if !foreign.isEmpty {
            commands.append("\(user == 0 ? "" : "sudo ")chown \(SystemAccounts.userName(of: user)) \(words(foreign))")
        }
        // The mode of a file of another user is only seen after the file has been given back.
        let writable = faults.filter { !$0.isForeign || $0.link == nil }.map(\.path)
        if !writable.isEmpty { commands.append("chmod go-w \(words(writable))") }
        // A folder of another user above a link's target stays that user's.
        let links = Set(faults.filter(\.isForeign).compactMap(\.link)).sorted()
        var steps = commands.isEmpty ? [] : ["run `\(commands.joined(separator: " && "))`"]
        if !links.isEmpty { steps.append("replace \(words(links)) with a copy of what it links to") }
        return steps.joined(separator: ", and ")
    }

    /// The path as a word of a shell command.
    private static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B...0x2F, 0x3A, 0x5F: true
            default: false
            }
        }
        guard !isPlain || path.hasPrefix("-") else { return path }
        return "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
