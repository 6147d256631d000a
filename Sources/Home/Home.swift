// SPDX-License-Identifier: Apache-2.0

package import CountersignVault
import Glibc

/// The folder with everything that one user of Countersign configures: allowed sites, trust anchors, credentials and
/// identities.
package struct Home: Sendable, Equatable {
    /// Without a trailing slash.
    package let path: String

    package init(path: String) {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.path = path
    }

    /// Uses `flag`, else `COUNTERSIGN_HOME`, else `countersign` in `XDG_CONFIG_HOME` or `~/.config`. Ignores empty
    /// variables, and a relative `XDG_CONFIG_HOME` as its specification requires.
    package static func locate(flag: String?, environment: [String: String]) throws(CountersignError) -> Home {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let flag {
            guard !flag.isEmpty else {
                throw CountersignError(
                    .configuration, "--home is empty",
                    hint: "name a folder with --home DIR, or leave the option out for ~/.config/countersign")
            }
            return Home(path: flag)
        }
        if let path = variable("COUNTERSIGN_HOME") { return Home(path: path) }
        if let base = variable("XDG_CONFIG_HOME"), base.hasPrefix("/") { return Home(path: "\(base)/countersign") }
        guard let user = variable("HOME") else {
            throw CountersignError(
                .environment, "there is no home folder: HOME is not set", hint: "use --home DIR")
        }
        return Home(path: "\(user)/.config/countersign")
    }

    /// Whether the folder exists. Throws if the path is something else.
    package func exists() throws(CountersignError) -> Bool {
        var found = stat()
        guard stat(path, &found) == 0 else {
            if errno == ENOENT { return false }
            if errno == ENOTDIR { throw notAFolder }
            let refused = errno == EACCES ? "a folder above it may not be read by your user: `namei -l \(path)`" : nil
            throw .system(errno, "cannot read the home \(path)", hint: refused)
        }
        guard found.st_mode & S_IFMT == S_IFDIR else { throw notAFolder }
        return true
    }

    private var notAFolder: CountersignError {
        CountersignError(.configuration, "\(path) is not a folder", hint: "--home names the folder of the home")
    }

    /// The error of a command that needs a home.
    package var missing: CountersignError {
        CountersignError(
            .unknownName, "there is no home at \(path) yet",
            hint:
                "`countersign sites add https://git.corp.example` creates one; another folder can be named with --home")
    }

    /// Creates the folder with mode 0700 if it is missing. Call this before writing into the home.
    package func prepare() throws(CountersignError) {
        try HomeFile.makeFolder(path, mode: 0o700)
    }

    /// Removes the temporary files of writers that were killed, the vault's included.
    package func removeAbandonedFiles() {
        let folders = [Self.sitesFolder, Self.anchorsFolder, Self.identitiesFolder, Self.interceptionFolder, "run"]
        for folder in folders { HomeFile.removeAbandoned(in: "\(path)/\(folder)") }
        HomeFile.removeAbandoned(in: path)
        vault.storage.removeAbandonedFiles()
    }

    // MARK: Files and folders

    package static let sitesFolder = "AllowedSites"
    package static let anchorsFolder = "Certs/anchors"
    package static let identitiesFolder = "Certs/identities"
    package static let interceptionFolder = "Certs/interception"

    /// A file of the home. Errors name it by its path relative to the home.
    package func file(_ name: String) -> HomeFile { HomeFile(path: "\(path)/\(name)", name: name) }

    /// The vault, which need not exist. Only this property decides in which storage it is.
    package var vault: SealedVault { SealedVault(home: path) }

    /// The chain of an identity, leaf first.
    package func identityChain(named name: String) -> HomeFile { file("\(Self.identitiesFolder)/\(name).pem") }

    /// The interception CA's root, which clients must trust.
    package var rootCertificate: HomeFile { file("\(Self.interceptionFolder)/root.pem") }

    package var issuingCertificate: HomeFile { file("\(Self.interceptionFolder)/issuing.pem") }

    /// The certificates that a client must trust, for variables such as `SSL_CERT_FILE`.
    package var bundle: HomeFile { file("\(Self.interceptionFolder)/bundle.pem") }

    /// A file that exists while no process of this home answers challenges.
    package var pauseMark: HomeFile { file("paused") }

    /// The socket on which a running server accepts commands such as `vault lock`.
    package var controlSocket: HomeFile { file("run/control.sock") }

    /// The files in a folder whose names end in `suffix` and do not begin with a dot, in byte order.
    package func files(in folder: String, suffix: String) throws(CountersignError) -> [HomeFile] {
        try names(in: folder).filter { $0.hasSuffix(suffix) && $0.utf8.count > suffix.utf8.count }
            .map { file("\(folder)/\($0)") }
    }

    /// The other files in a folder, which are not read. Excludes those of editors, read-me files and folders.
    package func ignoredFiles(in folder: String, suffix: String) throws(CountersignError) -> [HomeFile] {
        try names(in: folder).filter { name in
            !name.hasSuffix(suffix) && !name.hasSuffix("~") && !name.hasPrefix("#") && !name.hasPrefix("README")
                && !HomeFile.isTemporary(name)
        }.map { file("\(folder)/\($0)") }.filter(\.isRegular)
    }

    /// The names in a folder that do not begin with a dot, in byte order.
    private func names(in folder: String) throws(CountersignError) -> [String] {
        guard let entries = opendir("\(path)/\(folder)") else {
            if errno == ENOENT || errno == ENOTDIR {
                // A file, or a link to nothing.
                var found = stat()
                guard lstat("\(path)/\(folder)", &found) != 0 else {
                    throw CountersignError(.configuration, "\(path)/\(folder) is not a folder")
                }
                return []
            }
            throw .system(errno, "cannot read the folder \(path)/\(folder)")
        }
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
