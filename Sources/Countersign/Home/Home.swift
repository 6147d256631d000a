// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folder that holds everything of one Countersign: who may be answered, whom to trust, what to answer with.
package struct Home: Sendable, Equatable {
    /// Without a slash at its end.
    package let path: String

    package init(path: String) {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.path = path
    }

    /// `flag`, else `COUNTERSIGN_HOME`, else `countersign` in `XDG_CONFIG_HOME` or `~/.config`. An empty variable counts as
    /// none, a relative `XDG_CONFIG_HOME` too, as its specification has it.
    package static func locate(flag: String?, environment: [String: String]) throws(CountersignError) -> Home {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let flag {
            guard !flag.isEmpty else { throw CountersignError(.configuration, "--home is empty") }
            return Home(path: flag)
        }
        if let path = variable("COUNTERSIGN_HOME") { return Home(path: path) }
        if let base = variable("XDG_CONFIG_HOME"), base.hasPrefix("/") { return Home(path: "\(base)/countersign") }
        guard let user = variable("HOME") else {
            throw CountersignError(
                .environment, "there is no home folder to look into: HOME is not set", hint: "use --home DIR")
        }
        return Home(path: "\(user)/.config/countersign")
    }

    /// Makes the folder, mode 0700, where it is missing. Whatever writes into the home asks for this first.
    package func prepare() throws(CountersignError) {
        try HomeFile.makeFolder(path, mode: 0o700)
    }

    // MARK: What is where

    package static let sitesFolder = "AllowedSites"
    package static let anchorsFolder = "Certs/anchors"
    package static let identitiesFolder = "Certs/identities"
    package static let interceptionFolder = "Certs/interception"

    /// A file of the home, which errors call by its path below the home.
    package func file(_ name: String) -> HomeFile { HomeFile(path: "\(path)/\(name)", name: name) }

    /// The chain of an identity, leaf first.
    package func identityChain(named name: String) -> HomeFile { file("\(Self.identitiesFolder)/\(name).pem") }

    /// The interception CA's root: what clients are to trust.
    package var rootCertificate: HomeFile { file("\(Self.interceptionFolder)/root.pem") }

    package var issuingCertificate: HomeFile { file("\(Self.interceptionFolder)/issuing.pem") }

    /// Everything that a client is to trust, for its CA variables.
    package var bundle: HomeFile { file("\(Self.interceptionFolder)/bundle.pem") }

    /// Where a running server takes `vault lock` and its like.
    package var controlSocket: HomeFile { file("run/control.sock") }

    /// The names of a folder's files that end in `suffix` and do not begin with a dot, in the order of their bytes.
    package func files(in folder: String, suffix: String) throws(CountersignError) -> [HomeFile] {
        guard let entries = opendir("\(path)/\(folder)") else {
            if errno == ENOENT || errno == ENOTDIR { return [] }
            throw .system(errno, "cannot read the folder \(folder)")
        }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix("."), name.hasSuffix(suffix), name.utf8.count > suffix.utf8.count { names.append(name) }
        }
        names.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return names.map { file("\(folder)/\($0)") }
    }
}
