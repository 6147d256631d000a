// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import Glibc

/// An NSS database, as used by Firefox and Chromium: `cert9.db` (`sql:`), or the older `cert8.db` (`dbm:`). It is read
/// and written with `certutil`, which prompts on the terminal if the database has a password.
struct NSSStore: TrustStore {
    let kind = TrustStoreKind.nss
    let layout: StoreLayout
    /// The folder of the database.
    let place: String
    private let method: String

    /// The folders with Firefox's profiles, and the database folders of Chromium and Chrome, relative to the home
    /// folder: as installed from packages, snaps and Flatpaks.
    private static let profileFolders = [
        ".mozilla/firefox", ".config/mozilla/firefox", "snap/firefox/common/.mozilla/firefox",
        ".var/app/org.mozilla.firefox/.mozilla/firefox", ".var/app/org.mozilla.firefox/config/mozilla/firefox",
    ]
    private static let databaseFolders = [
        "snap/chromium/current/.pki/nssdb", "snap/chromium/current/.local/share/pki/nssdb",
        ".var/app/org.chromium.Chromium/.pki/nssdb", ".var/app/org.chromium.Chromium/data/pki/nssdb",
        ".var/app/com.google.Chrome/.pki/nssdb", ".var/app/com.google.Chrome/data/pki/nssdb",
    ]
    /// Programs that read the user's shared database, and create it when they first need it.
    private static let browsers = [
        "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser",
    ]

    /// All databases of the user, and the missing one that a browser would create.
    static func all(_ layout: StoreLayout) -> [NSSStore] {
        var stores: [NSSStore] = []
        var places: Set<String> = []
        func look(_ folder: String) {
            guard let place = HomeFile.resolved(folder), !places.contains(place) else { return }
            if StoreLayout.exists("\(place)/cert9.db") {
                stores.append(NSSStore(layout, place, "sql"))
            } else if StoreLayout.exists("\(place)/cert8.db") {
                stores.append(NSSStore(layout, place, "dbm"))
            } else {
                return
            }
            places.insert(place)
        }
        for folder in profileFolders.map({ "\(layout.home)/\($0)" }) {
            for name in StoreLayout.names(in: folder) { look("\(folder)/\(name)") }
        }
        for folder in sharedFolders(layout) { look(folder) }
        for folder in databaseFolders { look("\(layout.home)/\(folder)") }
        let shared = sharedFolder(layout)
        if !StoreLayout.exists("\(shared)/cert9.db"), !StoreLayout.exists("\(shared)/cert8.db"),
            browsers.contains(where: { layout.installedProgram($0) != nil })
        {
            stores.append(NSSStore(layout, shared, "sql"))
        }
        return stores
    }

    /// The places of the database that all NSS programs of a user share: the old one, and since Chromium 146 the one in
    /// the data folder of the XDG Base Directory Specification, which says to ignore a relative path.
    private static func sharedFolders(_ layout: StoreLayout) -> [String] {
        let data = layout.environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return ["\(layout.home)/.pki/nssdb", "\(data ?? "\(layout.home)/.local/share")/pki/nssdb"]
    }

    /// The folder that Chromium uses now: the old one if it exists, even if it is empty. Creating it would hide the
    /// database in the new one.
    private static func sharedFolder(_ layout: StoreLayout) -> String {
        let folders = sharedFolders(layout)
        return StoreLayout.isFolder(folders[0]) ? folders[0] : folders[1]
    }

    private init(_ layout: StoreLayout, _ place: String, _ method: String) {
        self.layout = layout
        self.place = place
        self.method = method
    }

    /// Whether the database does not exist yet.
    private var isMissing: Bool { !StoreLayout.exists("\(place)/\(method == "sql" ? "cert9" : "cert8").db") }

    var obstacle: Diagnostic? {
        guard layout.program("certutil") == nil else { return nil }
        return Diagnostic(
            "\(place) requires certutil, which is not installed",
            hint: "install libnss3-tools (Debian, Ubuntu), nss-tools (Fedora), nss (Arch) or mozilla-nss-tools (SUSE)")
    }

    func barrier(to change: StoreChange) -> Diagnostic? {
        guard !isMissing, !layout.isWritable(place) else { return nil }
        return Diagnostic("\(place) cannot be written", hint: "check the permissions: `ls -ld \(place)`")
    }

    func description(of change: StoreChange) -> String {
        switch change {
        case .add(_, let name):
            (isMissing ? "create the database \(place) for Chromium, and " : "in \(place) ") + "add \(name.text)"
        case .remove(let roots): "in \(place) remove \(roots.map(\.entry).joined(separator: ", "))"
        }
    }

    private var originals: OriginalFiles {
        OriginalFiles(
            place: place,
            names: method == "sql" ? ["cert9.db", "key4.db", "pkcs11.txt"] : ["cert8.db", "key3.db", "secmod.db"])
    }

    // MARK: Reading

    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot] {
        guard !isMissing else { return [] }
        var roots: [StoredRoot] = []
        // A root that was imported by hand has its common name as the nickname.
        for entry in try entries(in: place) where entry.nickname.lowercased().hasPrefix("countersign") {
            let name = entry.nickname
            let text = try certutil(["-L", "-n", name, "-a"], in: place)
            for certificate in (try? Certificate.readPEM(text)) ?? []
            where RootName(parsing: name) != nil || certificate == root {
                roots.append(
                    StoredRoot(
                        entry: name, name: name, certificate: certificate,
                        isInForce: entry.flags.prefix { $0 != "," }.contains("C")))
            }
        }
        return roots
    }

    private struct Entry: Equatable {
        let nickname: String
        /// `C,,`: trust for TLS, mail and code signing (certutil(1)).
        let flags: String
    }

    /// The entries of the database in `folder`, in its order.
    private func entries(in folder: String) throws(CountersignError) -> [Entry] {
        let list = String(decoding: try certutil(["-L"], in: folder), as: UTF8.self)
        return list.split(whereSeparator: \.isNewline).compactMap { line in
            // A nickname, which may contain spaces, and the flags.
            let line = Self.trimmed(line)
            guard let space = line.lastIndex(of: " ") else { return nil }
            let flags = line[line.index(after: space)...]
            guard flags.split(separator: ",", omittingEmptySubsequences: false).count == 3 else { return nil }
            let nickname = String(Self.trimmed(line[..<space]))
            // The second line of the heading consists of the names of the flags.
            return nickname.isEmpty ? nil : Entry(nickname: nickname, flags: String(flags))
        }
    }

    /// Removes trailing spaces.
    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.last == " " { text.removeLast() }
        return text
    }

    // MARK: Writing

    func make(_ change: StoreChange) throws(CountersignError) {
        switch change {
        case .add(let root, let name):
            if isMissing { return try makeDatabase(with: root, name) }
            let stored = try roots(like: root)
            let before = try entries(in: place)
            let isDone = try originals.replaceFiles(isFirst: stored.isEmpty) { folder throws(CountersignError) in
                try add(root, name, besides: stored, in: folder)
                return try isAdded(name, besides: stored, to: before, in: folder)
            }
            if !isDone { try add(root, name, besides: stored, in: place) }
        case .remove(let roots):
            let left = Set(try self.roots(like: nil).map(\.entry)).subtracting(roots.map(\.entry))
            if left.isEmpty {
                if originals.restore() { return }
                originals.discard()
                return try remove(roots, in: place)
            }
            let isDone = try originals.replaceFiles(isFirst: false) { folder throws(CountersignError) in
                try remove(roots, in: folder)
                return true
            }
            if !isDone { try remove(roots, in: place) }
        }
    }

    func removeRemains() {
        if let roots = try? roots(like: nil), roots.isEmpty { originals.discard() }
    }

    private func remove(_ roots: [StoredRoot], in folder: String) throws(CountersignError) {
        for root in roots { try certutil(["-D", "-n", root.entry], in: folder) }
    }

    /// `stored` are Countersign's roots that the database contains.
    private func add(
        _ root: Certificate, _ name: RootName, besides stored: [StoredRoot], in folder: String
    ) throws(CountersignError) {
        // If the certificate exists without being trusted, certutil would ignore the new nickname.
        if let present = stored.first(where: { $0.certificate == root }) {
            try certutil(["-M", "-n", present.entry, "-t", "C,,"], in: folder)
        } else {
            try certutil(["-A", "-n", name.text, "-t", "C,,", "-a"], in: folder, input: Array(root.pem.utf8))
        }
    }

    /// Whether the root's entry is the only difference.
    private func isAdded(
        _ name: RootName, besides stored: [StoredRoot], to before: [Entry], in folder: String
    ) throws(CountersignError) -> Bool {
        let own = Set(stored.map(\.entry) + [name.text])
        let after = try entries(in: folder)
        return after.filter { !own.contains($0.nickname) } == before.filter { !own.contains($0.nickname) }
    }

    /// Creates the database with the root as its only entry. Removes it again if that fails.
    private func makeDatabase(with root: Certificate, _ name: RootName) throws(CountersignError) {
        var newFolders: [String] = []
        var folder = place
        while !StoreLayout.exists(folder) {
            newFolders.insert(folder, at: 0)
            folder = HomeFile.folder(of: folder)
        }
        let isNew = originals.names.allSatisfy { !StoreLayout.exists("\(place)/\($0)") }
        try HomeFile.makeFolder(place, mode: 0o700)
        do throws(CountersignError) {
            try certutil(["-N", "--empty-password"], in: place)
            try add(root, name, besides: [], in: place)
        } catch {
            if isNew, hasOnly(name) {
                originals.recordCreation(newFolders: newFolders)
                _ = originals.restore()
            }
            throw error
        }
        if isNew, hasOnly(name) { originals.recordCreation(newFolders: newFolders) } else { originals.discard() }
    }

    /// Whether no other program has added an entry to a new database.
    private func hasOnly(_ name: RootName) -> Bool {
        ((try? entries(in: place)) ?? []).allSatisfy { $0.nickname == name.text }
    }

    @discardableResult
    private func certutil(
        _ arguments: [String], in folder: String, input: [UInt8] = []
    ) throws(CountersignError) -> [UInt8] {
        guard let program = layout.program("certutil") else {
            throw CountersignError(.environment, "certutil is not installed")
        }
        return try layout.helper([program] + arguments + ["-d", "\(method):\(folder)"]).succeed(input: input)
    }
}
