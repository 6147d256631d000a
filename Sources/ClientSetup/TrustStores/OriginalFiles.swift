// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import Glibc

/// A store's files from before Countersign's first entry, kept in a folder beside them until its last entry is removed.
///
/// A database's bytes change even if an entry is added and removed again, so removal ends with the original files. That
/// must never undo a change by another program, so a change is made on a copy, which takes the place of the files only
/// if they are still the same and no other program has them open. The originals are restored under the same conditions.
/// In all other cases, and after a crash, they are discarded, and the store is changed in place.
struct OriginalFiles {
    /// The store's folder.
    let place: String
    /// The names of the store's files. A missing file is part of the original state.
    let names: [String]

    private static let limitBytes = 64 << 20
    /// The folder beside the files, in it the folder for a copy, and the file that makes the originals valid.
    private static let (folderName, copyName, stateName) = ("countersign-original", "next", "state")

    // MARK: Changing

    /// Lets `change` modify a copy of the files, whose folder it receives, and puts the copy in their place. `isFirst`
    /// says that the present files are the original ones. `change` returns whether its result is as expected. Returns
    /// false if the files cannot be changed in this way; they are unchanged then, and the originals are discarded.
    func replaceFiles(
        isFirst: Bool, _ change: (_ folder: String) throws(CountersignError) -> Bool
    ) throws(CountersignError) -> Bool {
        guard let store = OpenFolder(place) else { return false }
        store.lock()
        if isFirst { Self.discard(in: store) }
        guard let kept = isFirst ? store.makeFolder(Self.folderName) : store.folder(Self.folderName),
            let before = copyFiles(of: store, to: kept, isFirst: isFirst)
        else {
            Self.discard(in: store)
            return false
        }
        do throws(CountersignError) {
            guard try change("\(place)/\(Self.folderName)/\(Self.copyName)"),
                exchange(store, kept, since: before, isFirst: isFirst)
            else {
                Self.discard(in: store)
                return false
            }
            return true
        } catch {
            if isFirst { Self.discard(in: store) } else { kept.removeAll(Self.copyName) }
            throw error
        }
    }

    /// Copies the files and returns their digest. Nil if they are in use or being changed, or if the originals of an
    /// earlier change are not those of these files.
    private func copyFiles(of store: OpenFolder, to kept: OpenFolder, isFirst: Bool) -> String? {
        kept.removeAll(Self.copyName)
        guard !hasJournal(in: store), let leases = FileLeases.taken(on: names, in: store), !leases.names.isEmpty,
            let digest = digest(of: leases), isFirst || readState(in: kept)?.digest == digest,
            let copy = kept.makeFolder(Self.copyName)
        else { return nil }
        for name in leases.names {
            guard let bytes = leases.contents(of: name, upTo: Self.limitBytes), let status = leases.status(of: name),
                copy.create(name, with: bytes, like: status)
            else { return nil }
        }
        return leases.areIntact ? digest : nil
    }

    private func exchange(_ store: OpenFolder, _ kept: OpenFolder, since before: String, isFirst: Bool) -> Bool {
        let earlier = readState(in: kept)
        guard let copy = kept.folder(Self.copyName), !hasJournal(in: copy), !hasJournal(in: store),
            let leases = FileLeases.taken(on: names, in: store), digest(of: leases) == before,
            let copied = FileLeases.taken(on: names, in: copy), copied.names == leases.names,
            let after = digest(of: copied), isFirst || earlier != nil,
            exchange(names.filter(leases.names.contains), of: store, with: copy, while: leases)
        else { return false }
        var state = State(digest: after, kept: leases.names.sorted())
        if let earlier, !isFirst { (state.kept, state.newFolders) = (earlier.kept, earlier.newFolders) }
        let isKept = !isFirst || leases.names.allSatisfy { copy.move($0, to: kept) }
        kept.removeAll(Self.copyName)
        if !isKept || !write(state, in: kept) { Self.discard(in: store) }
        return true
    }

    /// Exchanges the files, or moves those that the other folder does not have. Undoes that if another process tries to
    /// open one meanwhile, which would otherwise have got a file that is no longer the store's.
    private func exchange(
        _ names: [String], of store: OpenFolder, with other: OpenFolder, while leases: FileLeases
    ) -> Bool {
        var undo: [() -> Bool] = []
        for name in names {
            if store.exchange(name, with: other) {
                undo.append { store.exchange(name, with: other) }
            } else if !other.has(name), store.move(name, to: other) {
                undo.append { other.move(name, to: store) }
            } else {
                break
            }
        }
        store.sync()
        if undo.count == names.count, leases.areIntact { return true }
        for step in undo.reversed() { _ = step() }
        return false
    }

    private func hasJournal(in folder: OpenFolder) -> Bool {
        names.contains { name in ["-journal", "-wal"].contains { folder.has(name + $0) } }
    }

    // MARK: A new store

    /// Records that Countersign has created all files, and the folders `newFolders`, the topmost first. Records nothing
    /// if another program has the files open already.
    func recordCreation(newFolders: [String]) {
        guard let store = OpenFolder(place) else { return }
        store.lock()
        Self.discard(in: store)
        guard let leases = FileLeases.taken(on: names, in: store), let digest = digest(of: leases),
            let kept = store.makeFolder(Self.folderName)
        else { return }
        if !write(State(digest: digest, kept: [], newFolders: newFolders), in: kept) { Self.discard(in: store) }
    }

    // MARK: Restoring

    /// Restores the originals, and removes the folders that were created for them. Returns false if that could undo a
    /// change by another program; nothing has changed then.
    func restore() -> Bool {
        guard let store = OpenFolder(place) else { return false }
        store.lock()
        guard let kept = store.folder(Self.folderName), let state = readState(in: kept), !hasJournal(in: store),
            let leases = FileLeases.taken(on: names, in: store), digest(of: leases) == state.digest,
            state.kept.allSatisfy({ kept.hasFile($0) })
        else { return false }
        // The certificates last: if this is interrupted, the root is still in the store, and is found.
        guard leases.names.isSuperset(of: state.kept),
            exchange(names.reversed().filter(leases.names.contains), of: store, with: kept, while: leases)
        else { return false }
        Self.discard(in: store)
        for folder in state.newFolders.reversed() {
            guard rmdir(folder) == 0 else { break }
        }
        return true
    }

    /// Discards the originals.
    func discard() {
        if let store = OpenFolder(place) { Self.discard(in: store) }
    }

    private static func discard(in store: OpenFolder) {
        // Without its state, the rest of the folder has no effect if this is interrupted.
        store.folder(folderName)?.remove(stateName)
        store.removeAll(folderName)
    }

    // MARK: The state

    private struct State {
        /// Of the files as Countersign left them.
        var digest: String
        /// The names of the original files. The store's other files did not exist.
        var kept: [String]
        var newFolders: [String] = []
    }

    /// Each line is a word and a value.
    private func readState(in kept: OpenFolder) -> State? {
        guard let bytes = kept.contents(of: Self.stateName, upTo: 64 << 10) else { return nil }
        var state = State(digest: "", kept: [])
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            switch (parts.first, parts.last) {
            case ("digest", let value?): state.digest = value
            case ("file", let value?) where names.contains(value): state.kept.append(value)
            case ("folder", let value?): state.newFolders.append(value)
            default: return nil
            }
        }
        return state.digest.isEmpty ? nil : state
    }

    private func write(_ state: State, in kept: OpenFolder) -> Bool {
        let lines =
            ["digest \(state.digest)"] + state.kept.map { "file \($0)" } + state.newFolders.map { "folder \($0)" }
        let temporary = "\(Self.stateName).new"
        kept.remove(temporary)
        guard var model = kept.status(of: ".") else { return false }
        model.st_mode = 0o600
        let bytes = Array(lines.map { "\($0)\n" }.joined().utf8)
        guard kept.create(temporary, with: bytes, like: model), kept.rename(temporary, to: Self.stateName) else {
            return false
        }
        kept.sync()
        return true
    }

    /// The digest of all files. Nil if one cannot be read.
    private func digest(of leases: FileLeases) -> String? {
        var parts: [UInt8] = []
        for name in names {
            guard leases.names.contains(name) else {
                parts += [UInt8](repeating: 0, count: 32)
                continue
            }
            guard let bytes = leases.contents(of: name, upTo: Self.limitBytes) else { return nil }
            parts += Digest.sha256.hash(bytes)
        }
        return Hex.encode(Digest.sha256.hash(parts))
    }
}
