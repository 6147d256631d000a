// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignVault

/// A command's way into the vault of its home.
struct VaultDoor {
    let home: Home
    let secrets: SecretInput

    private var file: VaultFile { VaultFile(home: home.path) }

    /// The vault's passphrase. Throws `passphraseNeeded` where there is nobody to ask.
    func passphrase() throws -> Secret {
        do {
            return try secrets.read("the vault's passphrase")
        } catch let error as CountersignError {
            throw VaultError(
                .passphraseNeeded, "the vault is opened by a passphrase: \(error.detail)", hint: error.hint)
        }
    }

    /// The vault, or nil where there is none.
    func openIfThere() throws -> OpenVault? {
        guard try file.exists() else { return nil }
        return try open()
    }

    func open() throws -> OpenVault {
        Startup.reportHardening()
        return try file.open(passphrase: passphrase)
    }

    /// The vault, made where there is none.
    func openOrCreate() throws -> OpenVault {
        Startup.reportHardening()
        return try file.openOrCreate(passphrase: passphrase)
    }
}
