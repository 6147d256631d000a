// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignCryptography
import Glibc

/// Refuses a home whose list of sites or trust anchors other users could change, as ssh refuses such a `~/.ssh`.
///
/// The home, `AllowedSites`, `Certs`, `Certs/anchors` and their files must belong to this user, to root or, for root,
/// to the user who ran sudo, and no other user may write to them. If one is a symbolic link, its target is checked, and
/// every folder on the path to it, with the folders above them up to the home or the root of the file system. Otherwise
/// the folders above the home are not checked.
///
/// A file system that is mounted read-only protects everything on it, regardless of permissions: Kubernetes mounts
/// ConfigMaps in this way, with folders that are writable for everyone.
///
/// Write permission for a group is accepted if the group is the owner's private group, as Debian's ssh does: with
/// umask 002, which is the default on systems with such groups, git and editors create all files with it.
struct WriteProtection {
    private let home: Home
    private let user: uid_t
    private let owners: [uid_t]
    private let isPrivateGroup: (_ group: gid_t, _ owner: uid_t) -> Bool
    /// The resolved path of the home.
    private let end: String

    /// `sudoUser` is the user who ran sudo, which only counts for root.
    init(
        home: Home, user: uid_t = geteuid(), sudoUser: uid_t? = Self.sudoUser,
        isPrivateGroup: @escaping (_ group: gid_t, _ owner: uid_t) -> Bool = PrivateGroup.isPrivate
    ) {
        self.home = home
        self.user = user
        owners = [user, 0] + (user == 0 ? [sudoUser].compactMap(\.self) : [])
        self.isPrivateGroup = isPrivateGroup
        end = HomeFile.resolved(home.path) ?? home.path
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
        guard let way = LinkWay(from: path) else { return [] }
        var faults: [Fault] = []
        for place in way.places(upTo: end) where stat(place, &found) == 0 {
            if var fault = fault(of: found, place, place, isTarget: place == way.target) {
                fault.link = path
                faults.append(fault)
            }
        }
        // The owner of a link in a sticky folder may replace it.
        for link in way.links where lstat(link.path, &found) == 0 && !owners.contains(found.st_uid) {
            var folder = stat()
            guard stat(link.folder, &folder) == 0, folder.st_mode & S_ISVTX != 0, !Self.isReadOnly(link.folder) else {
                continue
            }
            var fault = foreign(found, link.path, link.path)
            fault.link = path
            faults.append(fault)
        }
        return faults
    }

    /// `isTarget` is false for a folder on the path of a link.
    private func fault(of found: stat, _ path: String, _ name: String, isTarget: Bool = true) -> Fault? {
        if Self.isReadOnly(path) { return nil }
        if !owners.contains(found.st_uid) { return foreign(found, path, name) }
        // In a sticky folder, such as /tmp, users can replace only their own files.
        if !isTarget, found.st_mode & S_ISVTX != 0 { return nil }
        func writable(by who: String) -> Fault {
            Fault(name: name, path: path, reason: "can be written by \(who)", isForeign: false)
        }
        if found.st_mode & S_IWOTH != 0 { return writable(by: "every user") }
        guard found.st_mode & S_IWGRP != 0 else { return nil }
        let list = AccessList(of: path)
        if list?.owningGroupMayWrite != false, !isPrivateGroup(found.st_gid, found.st_uid) {
            return writable(by: "the members of group \(SystemAccounts.groupName(of: found.st_gid))")
        }
        let means = "through its access control list"
        if let user = list?.writers.first(where: { !owners.contains($0) }) {
            return writable(by: "user \(SystemAccounts.userName(of: user)) \(means)")
        }
        if let group = list?.writingGroups.first(where: { !isPrivateGroup($0, found.st_uid) }) {
            return writable(by: "the members of group \(SystemAccounts.groupName(of: group)) \(means)")
        }
        return nil
    }

    private func foreign(_ found: stat, _ path: String, _ name: String) -> Fault {
        let owner = SystemAccounts.userName(of: found.st_uid)
        return Fault(name: name, path: path, reason: "belongs to user \(owner)", isForeign: true)
    }

    /// Whether the file system is mounted read-only: ST_RDONLY.
    private static func isReadOnly(_ path: String) -> Bool {
        var found = statvfs()
        return statvfs(path, &found) == 0 && found.f_flag & 1 != 0
    }

    // MARK: Repairing

    private static func hint(for faults: [Fault], user: uid_t) -> String {
        func words(_ paths: [String]) -> String { paths.map(ShellWord.quoted).joined(separator: " ") }
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
}
