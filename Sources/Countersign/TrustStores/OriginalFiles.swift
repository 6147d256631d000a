// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// A store's files as they were before Countersign's first entry, kept in a folder beside them until its last entry is
/// removed.
///
/// A database's bytes change even if an entry is added and removed again, so removal ends with the original files. They
/// are put back only if nobody else has changed the store in between, which a digest of the files shows, and if no
/// other program has them open, which would go on using the replaced files. In all other cases the files stay as they
/// are without the entry.
struct OriginalFiles {
    /// The store's folder.
    let place: String
    /// The names of the store's files. A missing file is part of the original state.
    let names: [String]

    private static let limitBytes = 64 << 20
    private var folder: String { "\(place)/countersign-original" }
    private var stateFile: HomeFile { HomeFile(path: "\(folder)/state") }

    /// The originals are kept, and nobody else has changed the files since Countersign did.
    var areCurrent: Bool {
        guard let state = readState(), let digest = digest() else { return false }
        return state.digest == digest
    }

    /// Whether another program has one of the files open.
    var areInUse: Bool {
        let leases = leases()
        defer { leases.release() }
        return leases.hasConflict
    }

    // MARK: Around a change

    /// Keeps the current files, unless the originals are kept already. `newFolders` were created for the store, the
    /// topmost first. Keeps nothing if the files cannot be restored faithfully.
    func keep(newFolders: [String] = []) {
        guard !areCurrent else { return }
        discard()
        // A symbolic link leads out of the folder, and a journal means that the database is being changed.
        for name in names where Self.isLink("\(place)/\(name)") || StoreLayout.exists("\(place)/\(name)-journal") {
            return
        }
        guard let before = digest(), mkdir(folder, 0o700) == 0 else { return }
        for name in names where StoreLayout.exists("\(place)/\(name)") {
            guard Self.copy("\(place)/\(name)", to: "\(folder)/\(name)") else { return discard() }
        }
        guard digest() == before else { return discard() }
        write(State(digest: before, newFolders: newFolders))
    }

    /// Countersign has changed the files, whose originals were current before.
    func changed() {
        guard let digest = digest(), let state = readState() else { return discard() }
        write(State(digest: digest, newFolders: state.newFolders))
    }

    /// Discards the originals.
    func discard() {
        for name in names + ["state"] { _ = unlink("\(folder)/\(name)") }
        _ = rmdir(folder)
    }

    /// Puts the originals back, and removes the folders that were created for them. Keeps the originals for another
    /// attempt if the files are in use, and discards them if somebody else has changed the files.
    func restore() {
        var leases = leases()
        // certutil, or a child that has not closed its copy of a descriptor yet, has the files open for a moment only.
        for _ in 0..<10 where leases.hasConflict {
            leases.release()
            usleep(20_000)
            leases = self.leases()
        }
        defer { leases.release() }
        guard !leases.hasConflict else { return }
        guard let state = readState(), digest(of: leases) == state.digest else { return discard() }
        for name in names {
            if StoreLayout.exists("\(folder)/\(name)") {
                guard rename("\(folder)/\(name)", "\(place)/\(name)") == 0 else { return }
            } else {
                _ = unlink("\(place)/\(name)")
            }
        }
        discard()
        for folder in state.newFolders.reversed() {
            guard rmdir(folder) == 0 else { return }
        }
    }

    // MARK: The state

    private struct State {
        /// Of the files as Countersign left them.
        var digest: String
        var newFolders: [String]
    }

    private func readState() -> State? {
        guard let bytes = try? stateFile.readIfThere(upTo: 64 << 10) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard let digest = lines.first else { return nil }
        return State(digest: digest, newFolders: Array(lines.dropFirst()))
    }

    private func write(_ state: State) {
        let text = ([state.digest] + state.newFolders).map { "\($0)\n" }.joined()
        do {
            try stateFile.replace(with: Array(text.utf8), mode: 0o600)
        } catch {
            discard()
        }
    }

    /// The digest of all files. Nil if one cannot be read.
    private func digest() -> String? {
        digest { name throws(CountersignError) in
            try HomeFile(path: "\(place)/\(name)").readIfThere(upTo: Self.limitBytes)
        }
    }

    /// The same through the descriptors that hold the leases: another descriptor would have to wait for them.
    private func digest(of leases: Leases) -> String? {
        digest { name throws(CountersignError) in
            guard let descriptor = leases.descriptors[name] else { return nil }
            return try HomeFile(path: "\(place)/\(name)").contents(of: descriptor, about: 0, upTo: Self.limitBytes)
        }
    }

    private func digest(_ read: (String) throws(CountersignError) -> [UInt8]?) -> String? {
        var parts: [UInt8] = []
        for name in names {
            do throws(CountersignError) {
                parts += try read(name).map { Digest.sha256.hash($0) } ?? [UInt8](repeating: 0, count: 32)
            } catch {
                return nil
            }
        }
        return Hex.encode(Digest.sha256.hash(parts))
    }

    // MARK: Files

    /// Copies the bytes, the permissions and the times.
    private static func copy(_ source: String, to target: String) -> Bool {
        var found = stat()
        guard stat(source, &found) == 0, let bytes = try? HomeFile(path: source).read(upTo: limitBytes) else {
            return false
        }
        let copy = HomeFile(path: target)
        guard (try? copy.replace(with: bytes, mode: found.st_mode & 0o777)) != nil else { return false }
        if geteuid() == 0 { _ = chown(target, found.st_uid, found.st_gid) }
        let times = [found.st_atim, found.st_mtim]
        return utimensat(AT_FDCWD, target, times, 0) == 0
    }

    private static func isLink(_ path: String) -> Bool {
        var found = stat()
        return lstat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFLNK
    }

    /// Write leases (fcntl(2), F_SETLEASE), which the kernel grants only for a file that nobody else has open, and
    /// which delay anybody who opens it until they are released.
    private struct Leases {
        var descriptors: [String: Int32] = [:]
        var hasConflict = false

        func release() { for descriptor in descriptors.values { close(descriptor) } }
    }

    // F_SETLEASE and F_SETSIG of <fcntl.h>, which are invisible to Swift.
    private static let (setLease, setSignal): (Int32, Int32) = (1024, 10)

    private func leases() -> Leases {
        var leases = Leases()
        for name in names {
            let descriptor = open("\(place)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard descriptor >= 0 else { continue }
            leases.descriptors[name] = descriptor
            // The kernel tells the holder of a lease that somebody waits: SIGIO would end the process, SIGURG does not.
            _ = fcntl(descriptor, Self.setSignal, SIGURG)
            // Other errors come from file systems without leases, whose files are replaced all the same.
            if fcntl(descriptor, Self.setLease, Int32(F_WRLCK)) != 0, errno == EAGAIN { leases.hasConflict = true }
        }
        return leases
    }
}
