// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The contents of a vault at one generation, with the keys to read and write it again.
struct VaultSnapshot: Sendable {
    let header: VaultHeader
    let dataKey: Secret
    let contents: VaultContents

    /// The stored key of the breaker's tags, or the one that is derived from the data key.
    var tagKey: Secret {
        if let stored = contents.tagKey { return stored }
        var key = dataKey.withBytes { Digest.sha256.hmac(Array("countersign credential tags 1".utf8), key: $0) }
        return Secret(wiping: &key)
    }
}

/// Asks for another passphrase after a wrong one; nil to give up.
package typealias PassphraseRetry = () -> Secret?

/// A vault that has not been opened, in any storage.
package struct SealedVault: Sendable {
    package let storage: any VaultStorage
    /// The scrypt parameters for new passphrases.
    let passphraseCost: Scrypt

    package init(storage: any VaultStorage) {
        self.init(storage: storage, passphraseCost: KeyDerivation.standard)
    }

    init(storage: any VaultStorage, passphraseCost: Scrypt) {
        self.storage = storage
        self.passphraseCost = passphraseCost
    }

    /// Where the vault is, quoted, for messages.
    var place: String { storage.location(of: .vault).debugDescription }

    /// Whether there is a vault, readable or not.
    package func exists() throws(VaultError) -> Bool { try storage.version(of: .vault) != nil }

    /// Facts that need no key. Throws as ``open(passphrase:)`` does for anything but a whole vault.
    package func status() throws(VaultError) -> VaultStatus {
        let (header, stored) = try sealed()
        return VaultStatus(
            location: storage.location(of: .vault), key: header.derivation.key, sizeBytes: stored.bytes.count,
            keyLocation: storage.location(of: .key), hasKey: try storage.version(of: .key) != nil,
            hasBackup: try storage.version(of: .backup) != nil)
    }

    /// Decrypts the vault, if that needs no passphrase. Throws if the vault or its key is faulty.
    package func check() throws(VaultError) {
        guard try sealed().header.derivation.key == .file else { return }
        _ = try snapshot { throw VaultError(.passphraseNeeded, "the vault needs a passphrase") }
    }

    // MARK: Reading

    /// The stored vault and its header.
    func sealed() throws(VaultError) -> (header: VaultHeader, stored: StoredVaultItem) {
        guard let stored = try storage.read(.vault, upTo: VaultLimits.fileBytes) else {
            throw VaultError(
                .missing, "there is no vault at \(place)", hint: "`countersign credential set --user USER` creates one")
        }
        return (try explaining { () throws(VaultError) in try VaultHeader(of: stored.bytes) }, stored)
    }

    /// `` `mv …` restores``; nil without a backup.
    private var restoreHint: String? {
        guard (try? storage.version(of: .backup)) != nil else { return nil }
        return "`\(storage.restoreCommand)` restores"
    }

    /// Throws `missing` if there is no vault, but a backup of one.
    package func checkNotLost() throws(VaultError) {
        guard try !exists(), try storage.version(of: .backup) != nil else { return }
        throw lost
    }

    var lost: VaultError {
        VaultError(
            .missing, "\(place) is missing, but its backup is still there",
            hint: "`\(storage.restoreCommand)` restores it; remove the backup to start with an empty vault")
    }

    /// Names the vault in an error about its bytes, and says how to restore it.
    private func explaining<Value>(_ body: () throws(VaultError) -> Value) throws(VaultError) -> Value {
        do throws(VaultError) {
            return try body()
        } catch {
            let restore = restoreHint.map { "\($0) the version before the last change" }
            let alternative = restore.map { "; if the vault was altered, \($0)" } ?? ""
            let hint: String? =
                switch error.code {
                case .altered, .cut, .notAVault: restore ?? error.hint ?? "restore it from a backup"
                case .wrongKey:
                    "restore \(storage.location(of: .key).debugDescription) from a backup\(alternative)"
                case .wrongPassphrase: "try again\(alternative)"
                default: error.hint
                }
            throw VaultError(error.code, "\(place): \(error.detail)", hint: hint)
        }
    }

    /// Reads and decrypts the vault; also returns the stored bytes and version. Needs no key if `known` has the same
    /// wrapped data key.
    func snapshot(
        known: VaultSnapshot? = nil, again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws(VaultError) -> (snapshot: VaultSnapshot, stored: StoredVaultItem) {
        var answer: Secret?
        var attempts = 3
        while true {
            let (header, stored) = try sealed()
            attempts -= 1
            do throws(VaultError) {
                let dataKey: Secret
                if let known, known.header.isWrapped(like: header) {
                    dataKey = known.dataKey
                } else {
                    dataKey = try self.dataKey(of: header, again, passphrase: passphrase, answer: &answer)
                }
                let contents = try explaining { () throws(VaultError) in
                    try VaultCodec.decode(stored.bytes, header: header, dataKey: dataKey)
                }
                return (VaultSnapshot(header: header, dataKey: dataKey, contents: contents), stored)
            } catch {
                // Another process may have replaced both between the reading of the vault and of its key.
                guard attempts > 0, error.code == .wrongKey || error.code == .keyFileMissing,
                    try storage.version(of: .vault) != stored.version
                else { throw error }
            }
        }
    }

    private func dataKey(
        of header: VaultHeader, _ again: PassphraseRetry?, passphrase: () throws -> Secret, answer: inout Secret?
    ) throws(VaultError) -> Secret {
        switch header.derivation {
        case .none:
            return try fittingKey(of: header).dataKey
        case .scrypt(let scrypt, let salt):
            var secret: Secret
            if let answer { secret = answer } else { secret = try ask(passphrase) }
            while true {
                answer = secret
                let key = try derive(scrypt, salt, from: secret)
                do throws(VaultError) {
                    return try explaining { () throws(VaultError) in try VaultCodec.dataKey(of: header, key: key) }
                } catch {
                    guard error.code == .wrongPassphrase, let next = again?() else { throw error }
                    secret = next
                }
            }
        }
    }

    /// The stored key that opens `header`, of the two that there are while the key is being changed.
    func fittingKey(of header: VaultHeader) throws(VaultError) -> (key: Secret, dataKey: Secret) {
        guard let keys = try storedKeys() else {
            throw VaultError(
                .keyFileMissing, "\(storage.location(of: .key).debugDescription) is missing",
                hint: "restore it from a backup: nothing else opens this vault")
        }
        return try explaining { () throws(VaultError) -> (key: Secret, dataKey: Secret) in
            var refusal = VaultError(.wrongKey, "the key file contains no key")
            for key in keys {
                do throws(VaultError) {
                    return (key, try VaultCodec.dataKey(of: header, key: key))
                } catch {
                    refusal = error
                }
            }
            throw refusal
        }
    }

    private func ask(_ passphrase: () throws -> Secret) throws(VaultError) -> Secret {
        do {
            return try passphrase()
        } catch let error as VaultError {
            throw error
        } catch {
            throw VaultError(.passphraseNeeded, "the vault needs a passphrase, and none was given: \(error)")
        }
    }

    // MARK: Keys

    /// The stored keys: one, two while the key is being changed, nil if the item does not exist.
    func storedKeys() throws(VaultError) -> [Secret]? {
        guard var stored = try storage.read(.key, upTo: VaultLimits.keyFileBytes) else { return nil }
        defer { stored.bytes.wipe() }
        do throws(VaultError) {
            return try stored.bytes.withUnsafeBufferPointer { bytes throws(VaultError) in
                try KeyFileText.decode(UnsafeRawBufferPointer(bytes))
            }
        } catch {
            throw VaultError(
                error.code, "\(storage.location(of: .key).debugDescription): \(error.detail)", hint: error.hint)
        }
    }

    func writeKeys(_ keys: [Secret]) throws(VaultError) {
        try KeyFileText.encode(keys).withBytes { bytes throws(VaultError) in
            try storage.replace(.key, with: bytes, if: .always)
        }
    }

    /// The key that a new passphrase derives, or nil if a stored key is to open the vault.
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

    /// Seals `contents` under a new nonce and stores them as the vault.
    func write(
        _ contents: VaultContents, header: VaultHeader, dataKey: Secret, if condition: VaultWriteCondition
    ) throws(VaultError) {
        let nonce = Randomness.bytes(AESGCM.nonceBytes)
        let sealed = try VaultCodec.encode(contents, header: header, dataKey: dataKey, nonce: nonce)
        try storage.replace(.vault, with: sealed, if: condition)
    }
}
