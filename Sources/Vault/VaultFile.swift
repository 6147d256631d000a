// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The vault of a home, closed: `vault`, `vault.key`, `vault.bak` and `vault.lock`.
package struct VaultFile: Sendable {
    let folder: VaultFolder
    /// What a new passphrase costs to try.
    let passphraseCost: Scrypt

    /// The vault of the home at `home`, which need not exist.
    package init(home: String) {
        self.init(folder: VaultFolder(path: home), passphraseCost: KeyDerivation.standard)
    }

    init(folder: VaultFolder, passphraseCost: Scrypt) {
        self.folder = folder
        self.passphraseCost = passphraseCost
    }

    package var path: String { folder.path(of: VaultFolder.vault) }

    /// Whether there is a vault, readable or not.
    package func exists() throws(VaultError) -> Bool { try fingerprint() != nil }

    /// Which file the vault is just now, nil where there is none: tells a server that another process has written it.
    package func fingerprint() throws(VaultError) -> VaultFingerprint? { try folder.look(at: VaultFolder.vault) }

    /// What can be said without opening it. Throws as ``open(passphrase:)`` does for what is not a whole vault.
    package func status() throws(VaultError) -> VaultStatus {
        let (header, found) = try sealed()
        return VaultStatus(
            path: path, key: header.derivation.key, sizeBytes: found.fingerprint.sizeBytes,
            mode: found.fingerprint.mode, keyFilePath: folder.path(of: VaultFolder.key),
            hasKeyFile: try folder.look(at: VaultFolder.key) != nil,
            hasBackup: try folder.look(at: VaultFolder.backup) != nil)
    }

    /// Opens the vault. `passphrase` is asked once, and only when the vault wants one; the answer is scrypt's input as it
    /// stands. Blocks for about a second then: call it off the event loops.
    package func open(passphrase: () throws -> Secret) throws(VaultError) -> OpenVault {
        OpenVault(file: self, state: try snapshot(passphrase: passphrase))
    }

    /// Opens the vault, or makes an empty one that a new `vault.key` opens where there is none.
    package func openOrCreate(passphrase: () throws -> Secret) throws(VaultError) -> OpenVault {
        if try !exists() {
            do {
                return try create(openedBy: .file)
            } catch  where error.code == .exists {}
        }
        return try open(passphrase: passphrase)
    }

    /// Makes an empty vault, and the home's folder where that is missing. Throws `exists` where there is a vault, and
    /// `missing` where only a backup is left.
    package func create(openedBy key: NewVaultKey) throws(VaultError) -> OpenVault {
        try folder.prepare()
        let wrapping = try passphraseKey(for: key)
        let lock = try folder.lockForWriting()
        defer { lock.release() }
        guard try !exists() else { throw VaultError(.exists, "there is a vault at \(path.debugDescription) already") }
        guard try folder.look(at: VaultFolder.backup) == nil else {
            let backup = folder.path(of: VaultFolder.backup)
            throw VaultError(
                .missing, "\(path.debugDescription) is gone, its backup is still there",
                hint: "mv \(backup) \(path), or remove the backup to begin anew")
        }
        let header: VaultHeader
        let dataKey = Randomness.secret(AESGCM.keyBytes)
        if let wrapping {
            header = try wrap(dataKey, under: wrapping.key, wrapping.derivation)
        } else {
            // A key whose vault was never written, because the process was stopped in between, serves again.
            let kept = try keyFile()?.first
            let key = kept ?? Randomness.secret(KeyFileText.keyBytes)
            if kept == nil { try writeKeyFile([key]) }
            header = try wrap(dataKey, under: key, .none)
        }
        let contents = VaultContents()
        try write(contents, header: header, dataKey: dataKey)
        return OpenVault(file: self, state: VaultSnapshot(header: header, dataKey: dataKey, contents: contents))
    }

    // MARK: Sealed and opened

    /// The file as it is, its header read.
    func sealed() throws(VaultError) -> (header: VaultHeader, found: VaultFolder.Found) {
        guard let found = try folder.read(VaultFolder.vault, upTo: VaultLimits.fileBytes) else {
            throw VaultError(
                .missing, "there is no vault at \(path.debugDescription)",
                hint: "`countersign credential set` makes one")
        }
        return (try naming(path) { () throws(VaultError) in try VaultHeader(of: found.bytes) }, found)
    }

    private func naming<Value>(
        _ path: String, _ body: () throws(VaultError) -> Value
    ) throws(VaultError) -> Value {
        do throws(VaultError) { return try body() } catch { throw error.about(path) }
    }

    /// The vault, opened. `known` spares the key when the vault is still wrapped as it was.
    func snapshot(
        known: VaultSnapshot? = nil, passphrase: () throws -> Secret
    ) throws(VaultError) -> VaultSnapshot {
        var answer: Secret?
        var attempts = 3
        while true {
            let (header, found) = try sealed()
            attempts -= 1
            do throws(VaultError) {
                let dataKey: Secret
                if let known, known.header.isWrapped(like: header) {
                    dataKey = known.dataKey
                } else {
                    dataKey = try self.dataKey(of: header, passphrase: passphrase, answer: &answer)
                }
                let contents = try naming(path) { () throws(VaultError) in
                    try VaultCodec.decode(found.bytes, header: header, dataKey: dataKey)
                }
                return VaultSnapshot(header: header, dataKey: dataKey, contents: contents, file: found.bytes)
            } catch {
                // Between reading the vault and its key another process may have put new ones in their places.
                guard attempts > 0, error.code == .wrongKey || error.code == .keyFileMissing,
                    try fingerprint() != found.fingerprint
                else { throw error }
            }
        }
    }

    private func dataKey(
        of header: VaultHeader, passphrase: () throws -> Secret, answer: inout Secret?
    ) throws(VaultError) -> Secret {
        switch header.derivation {
        case .none:
            return try fittingKey(of: header).dataKey
        case .scrypt(let scrypt, let salt):
            let secret: Secret
            if let answer { secret = answer } else { secret = try ask(passphrase) }
            answer = secret
            let key = try derive(scrypt, salt, from: secret)
            return try naming(path) { () throws(VaultError) in try VaultCodec.dataKey(of: header, key: key) }
        }
    }

    /// The one key of the key file that opens `header`.
    func fittingKey(of header: VaultHeader) throws(VaultError) -> (key: Secret, dataKey: Secret) {
        guard let keys = try keyFile() else {
            throw VaultError(
                .keyFileMissing, "\(folder.path(of: VaultFolder.key).debugDescription) is missing",
                hint: "restore it from a backup: nothing else opens this vault")
        }
        var refusal = VaultError(.wrongKey, "the key file has no key")
        for key in keys {
            do throws(VaultError) {
                return (key, try VaultCodec.dataKey(of: header, key: key))
            } catch {
                refusal = error
            }
        }
        throw refusal.about(path)
    }

    private func ask(_ passphrase: () throws -> Secret) throws(VaultError) -> Secret {
        do {
            return try passphrase()
        } catch let error as VaultError {
            throw error
        } catch {
            throw VaultError(.passphraseNeeded, "the vault is opened by a passphrase, and none was given: \(error)")
        }
    }

    // MARK: Keys

    /// The keys in `vault.key`, nil where there is no such file.
    func keyFile() throws(VaultError) -> [Secret]? {
        guard var found = try folder.read(VaultFolder.key, upTo: VaultLimits.keyFileBytes) else { return nil }
        defer { folder.wipe(&found.bytes) }
        return try found.bytes.withUnsafeBufferPointer { bytes throws(VaultError) in
            try naming(folder.path(of: VaultFolder.key)) { () throws(VaultError) in
                try KeyFileText.decode(UnsafeRawBufferPointer(bytes))
            }
        }
    }

    func writeKeyFile(_ keys: [Secret]) throws(VaultError) {
        try KeyFileText.encode(keys).withBytes { bytes throws(VaultError) in
            try folder.replace(VaultFolder.key, with: bytes)
        }
    }

    /// The key that a new passphrase stands for, or nil where there is to be a key file.
    func passphraseKey(for new: NewVaultKey) throws(VaultError) -> (key: Secret, derivation: KeyDerivation)? {
        guard case .passphrase(let passphrase) = new else { return nil }
        guard passphrase.count > 0 else { throw VaultError(.passphraseNeeded, "the new passphrase is empty") }
        let salt = Randomness.bytes(KeyDerivation.saltBytes)
        return (try derive(passphraseCost, salt, from: passphrase), .scrypt(passphraseCost, salt: salt))
    }

    private func derive(_ scrypt: Scrypt, _ salt: [UInt8], from passphrase: Secret) throws(VaultError) -> Secret {
        do {
            return try scrypt.key(from: passphrase, salt: salt, lengthBytes: AESGCM.keyBytes)
        } catch {
            throw VaultError(.cryptography, error.detail)
        }
    }

    // MARK: Writing

    func wrap(
        _ dataKey: Secret, under key: Secret, _ derivation: KeyDerivation
    ) throws(VaultError) -> VaultHeader {
        try VaultCodec.header(
            wrapping: dataKey, under: key, derivation: derivation, nonce: Randomness.bytes(AESGCM.nonceBytes))
    }

    /// Seals `contents` under a new nonce and puts them in the vault's place.
    func write(_ contents: VaultContents, header: VaultHeader, dataKey: Secret) throws(VaultError) {
        let nonce = Randomness.bytes(AESGCM.nonceBytes)
        let sealed = try VaultCodec.encode(contents, header: header, dataKey: dataKey, nonce: nonce)
        try folder.replace(VaultFolder.vault, with: sealed)
    }
}
