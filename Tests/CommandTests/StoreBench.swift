// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign
@testable import CountersignClientSetup

/// A root certificate, a home, and fake system and user trees with trust stores, all in a temporary folder.
class StoreBench {
    let folder: TemporaryFolder
    let home: Home
    let root: Certificate

    init() throws {
        folder = try TemporaryFolder("stores")
        home = Home(path: folder.file("home"))
        root = try InterceptionAuthority.create(at: Int64(time(nil))).root
        try FileManager.default.createDirectory(atPath: folder.file("user"), withIntermediateDirectories: true)
    }

    /// Takes the place of `/`.
    var tree: String { folder.file("tree") }
    var name: String { RootName(of: root, in: home).text }

    /// An installer that works on the fake trees.
    func installer(
        path: String = "/usr/bin:/bin", java: String? = nil, privilege: StoreLayout.Privilege = .own,
        isWritable: @escaping @Sendable (String) -> Bool = { access($0, W_OK) == 0 }, home: Home? = nil,
        data: String? = nil
    ) -> TrustInstaller {
        var environment = ["PATH": path, "HOME": folder.file("user")]
        environment["JAVA_HOME"] = java
        environment["XDG_DATA_HOME"] = data
        return TrustInstaller(
            home: home ?? self.home,
            layout: StoreLayout(
                root: tree, home: folder.file("user"), environment: environment, privilege: privilege,
                isWritable: isWritable))
    }

    func run(
        _ installer: TrustInstaller, _ goal: TrustInstaller.Goal, _ kind: TrustStoreKind
    ) -> [TrustInstaller.Outcome] {
        installer.steps(to: goal, in: [kind]).map { installer.perform($0, to: goal) }
    }

    @discardableResult
    func tool(_ words: String..., input: String = "") throws -> CommandResult {
        let options = words[0] == "keytool" ? JavaStore.briefRun : []
        return try Command.run(
            Tool.path(words[0]), options + words.dropFirst(), environment: ["PATH": "/usr/bin:/bin"], input: input,
            in: folder)
    }

    /// All files in a folder, recursively, with symbolic links as their targets.
    func listing(_ path: String) -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for case let name as String in FileManager.default.enumerator(atPath: path) ?? .init() {
            let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(path)/\(name)")
            files[name] = link.map { Array("-> \($0)".utf8) } ?? TextFile.bytes("\(path)/\(name)")
        }
        return files
    }

    /// The folders, and the digests and permissions of the files, in a folder.
    func digests(_ path: String) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: listing(path).map { name, bytes in
                var found = stat()
                lstat("\(path)/\(name)", &found)
                let isFolder = found.st_mode & S_IFMT == S_IFDIR
                let digest = isFolder ? "folder" : Hex.encode(Digest.sha256.hash(bytes).prefix(4))
                return (name, "\(digest) \(String(found.st_mode & 0o7777, radix: 8))")
            })
    }

    /// Creates a program in the folder `bin`, using another process: a child that another test starts meanwhile could
    /// inherit our write descriptor, and a file that is open for writing cannot be executed.
    func script(_ name: String, _ text: String) throws {
        let path = try folder.write("bin/\(name)", "")
        try tool(
            "sh", "-c", "cat > \"$1.new\" && chmod 755 \"$1.new\" && mv \"$1.new\" \"$1\"", "sh", path,
            input: "#!/bin/sh\n\(text)\n")
    }
}
