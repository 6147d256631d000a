// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignVault

/// A home, and configuration profiles for it.
final class ProfileSandbox: Sendable {
    let sandbox: Sandbox
    var folder: TemporaryFolder { sandbox.folder }

    /// Makes the root `root`, the intermediate CA `intermediate` and the identity `laptop`, with the password "secret".
    init(_ sandbox: Sandbox? = nil) throws {
        self.sandbox = try sandbox ?? Sandbox()
        let folder = self.sandbox.folder
        try MadeProfile.certificate("root", "/O=Example/CN=Root", extensions: MadeProfile.authority, in: folder)
        try MadeProfile.certificate(
            "intermediate", "/O=Example/CN=Intermediate", extensions: MadeProfile.authority, issuer: "root", in: folder)
        try MadeProfile.certificate(
            "laptop", "/O=Example/CN=laptop", extensions: MadeProfile.client, issuer: "intermediate", in: folder)
        _ = try MadeProfile.pkcs12("laptop", password: "secret", in: folder)
        try Home(path: self.sandbox.home).prepare()
        if try !SealedVault(home: self.sandbox.home).exists() {
            _ = try SealedVault(home: self.sandbox.home).create(openedBy: .file)
        }
    }

    var root: [String: any Sendable] { MadeProfile.anchor(folder.file("root.pem"), "example.root") }
    var intermediate: [String: any Sendable] {
        MadeProfile.anchor(folder.file("intermediate.pem"), "example.intermediate")
    }
    var identity: [String: any Sendable] {
        MadeProfile.identity(folder.file("laptop.p12"), "example.laptop", password: "secret")
    }

    func write(
        _ payloads: [[String: any Sendable]], identifier: String = "example.corp",
        as name: String = "corp.mobileconfig"
    ) throws -> String {
        try MadeProfile.write(name, identifier: identifier, displayName: identifier, payloads, in: folder)
    }

    func install(_ file: String, _ flags: String..., input: String = "") throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable, "profile", "install", file, "--yes"] + flags,
            environment: try sandbox.environment(), folder: folder.path, input: input, in: folder)
    }

    @discardableResult
    func succeed(_ arguments: String...) throws -> String {
        let done = try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable] + arguments,
            environment: try sandbox.environment(), folder: folder.path, in: folder)
        guard done.status == 0 else { throw HarnessError("countersign \(arguments): \(done.said)") }
        return done.output
    }

    // MARK: State

    var vault: VaultContents {
        get throws {
            try SealedVault(home: sandbox.home).open { throw HarnessError("unexpected request for a passphrase") }
                .contents
        }
    }

    /// The files of the home with their contents, without the vault, locks and sockets.
    func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        let names = FileManager.default.enumerator(atPath: sandbox.home)?.compactMap { $0 as? String } ?? []
        for name in names where !name.hasPrefix("vault") && !name.hasPrefix("run") {
            var isFolder: ObjCBool = false
            let path = "\(sandbox.home)/\(name)"
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            files[name] = TextFile.bytes(path)
        }
        return files
    }

    /// Everything that a profile may change: the files, and the vault without its generation.
    func state() throws -> HomeState {
        var contents = try vault
        contents.generation = 1
        return HomeState(files: try files(), contents: contents)
    }
}

struct HomeState: Equatable {
    let files: [String: [UInt8]]
    let contents: VaultContents
}
