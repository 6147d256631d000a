// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Testing

@testable import CountersignVault

/// A temporary folder for one test, removed with its contents.
final class TemporaryHome: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/countersign-vault-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in Self.names(in: path) {
            unlink("\(path)/\(name)")
            rmdir("\(path)/\(name)")
        }
        rmdir(path)
    }

    var sealedVault: SealedVault { SealedVault(home: path) }

    /// The vault of a home with many concurrent writers, with patience for a slow machine.
    static func sharedVault(_ path: String) -> SealedVault {
        SealedVault(storage: VaultFolder(path: path, patience: .seconds(120)), passphraseCost: cheapest)
    }

    func sealedVault(before step: @escaping @Sendable (VaultFolder.Step) throws(VaultError) -> Void) -> SealedVault {
        SealedVault(storage: VaultFolder(path: path, before: step), passphraseCost: cheapest)
    }

    /// The names of the files, sorted.
    var names: [String] { Self.names(in: path) }

    func bytes(_ name: String) throws -> [UInt8] {
        let file = open("\(path)/\(name)", O_RDONLY)
        try #require(file >= 0, "\(name) is not there")
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = read(file, &bytes, bytes.count)
        try #require(count >= 0 && count < bytes.count)
        return Array(bytes.prefix(count))
    }

    func put(_ bytes: some Collection<UInt8>, _ name: String, mode: mode_t = 0o600) throws {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, mode)
        try #require(file >= 0)
        defer { close(file) }
        try #require(write(file, Array(bytes), bytes.count) == bytes.count && fchmod(file, mode) == 0)
    }

    func mode(_ name: String) throws -> mode_t {
        var found = stat()
        try #require(lstat("\(path)/\(name)", &found) == 0)
        return found.st_mode & 0o7777
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

/// The lowest cost that a vault accepts: N = 2^15.
let cheapest = Scrypt(costExponent: 15, blockSize: 8, parallelization: 1)

struct NoPassphrase: Error {}

/// For vaults that must not ask for a passphrase.
func unasked() throws -> Secret { throw NoPassphrase() }

func filled() throws -> VaultContents {
    var contents = VaultContents()
    try contents.setCredential(name: "enrollment", user: "jdoe", password: Secret(utf8: "canary-password"))
    try contents.setIdentityKey(
        IdentityKey(
            name: "laptop", privateKey: Secret(utf8: "canary-key"), leafSHA256: [UInt8](repeating: 7, count: 32)))
    try contents.setInterception(
        InterceptionKeys(rootKey: Secret(utf8: "canary-root"), issuingKey: Secret(utf8: "canary-issuing")))
    return contents
}

func fill(_ contents: inout VaultContents) throws {
    contents = try filled()
}

/// The code of the error that `body` throws, nil if it does not throw.
func code<Value>(_ body: () throws -> Value) throws -> VaultError.Code? {
    do {
        _ = try body()
        return nil
    } catch let error as VaultError {
        return error.code
    }
}
