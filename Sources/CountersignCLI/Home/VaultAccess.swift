// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignVault

/// Opens the vault of a command's home, asking for the passphrase if it needs one.
struct VaultAccess {
    let home: Home
    let secrets: SecretInput

    private var file: SealedVault { SealedVault(home: home.path) }

    /// The vault's passphrase. Throws `passphraseNeeded` if it can be read from neither standard input nor a terminal.
    func passphrase() throws -> Secret {
        do {
            return try secrets.read("the vault's passphrase")
        } catch let error as CountersignError {
            throw VaultError(
                .passphraseNeeded, "the vault needs its passphrase: \(error.detail)", hint: error.hint)
        }
    }

    /// Asks on the terminal for another passphrase after a wrong one, twice. Nil if there is nobody to ask.
    var again: PassphraseRetry? {
        guard secrets.canAskAgain else { return nil }
        var attempts = 2
        return {
            guard attempts > 0 else { return nil }
            attempts -= 1
            return secrets.readAgain("the vault's passphrase")
        }
    }

    /// The vault, or nil if the home has none.
    func openIfThere() throws -> OpenVault? {
        guard try file.exists() else { return nil }
        return try open()
    }

    func open() throws -> OpenVault {
        Startup.reportHardening()
        return try file.open(again: again, passphrase: passphrase)
    }

    /// The vault, created if the home has none.
    func openOrCreate() throws -> OpenVault {
        Startup.reportHardening()
        return try file.openOrCreate(again: again, passphrase: passphrase)
    }
}

extension CountersignError {
    /// `there is no KIND "NAME"`; the hint lists the names that exist, or the command that adds the first.
    static func unknown(
        _ kind: String, _ name: String, known: some Collection<String>, addedBy command: String
    ) -> CountersignError {
        unknown("there is no \(kind) \(name.debugDescription)", known: known, addedBy: command)
    }

    static func unknown(
        _ detail: String, known: some Collection<String>, addedBy command: String
    ) -> CountersignError {
        CountersignError(
            .unknownName, detail,
            hint: known.isEmpty
                ? "there are none; `countersign \(command)` adds one"
                : "known names: \(known.sorted().joined(separator: ", "))")
    }
}
