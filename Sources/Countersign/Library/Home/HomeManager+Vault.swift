// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignVault
public import FoundationEssentials

/// The state of a home's vault.
public struct VaultState: Equatable, Sendable {
    /// The key that opens a vault.
    public enum Key: Hashable, Sendable {
        /// A file that only the user can read.
        case file
        /// A passphrase.
        case passphrase
    }

    /// The key that opens it; nil if the home has no vault yet.
    public let key: Key?
    /// The file; nil for the vault of another storage.
    public let file: URL?
    /// Its size in bytes.
    public let bytes: Int
    /// Whether the home's running server has locked it; nil if no server is running.
    public let isLockedInServer: Bool?
    /// The process of the running server.
    public let server: Int32?

    /// Creates a value, for the tests of a program.
    public init(key: Key?, file: URL? = nil, bytes: Int = 0, isLockedInServer: Bool? = nil, server: Int32? = nil) {
        self.key = key
        self.file = file
        self.bytes = bytes
        self.isLockedInServer = isLockedInServer
        self.server = server
    }
}

extension HomeManager {
    /// The state of the vault, without opening it.
    public func vaultState() async throws -> VaultState {
        try await blocking { [home] in
            let server = try? ControlSocket.ask(.status, of: home)
            guard try home.vault.exists() else {
                return VaultState(key: nil, isLockedInServer: server?.isLocked, server: server?.processIdentifier)
            }
            let status = try home.vault.status()
            return VaultState(
                key: status.key == .file ? .file : .passphrase, file: URL(filePath: status.location),
                bytes: status.sizeBytes, isLockedInServer: server?.isLocked, server: server?.processIdentifier)
        }
    }

    /// Opens the vault with the passphrase that a person has typed, for the controller of this manager and for the
    /// home's running server, if there are any that have it locked. Takes about a second. Throws `vaultLocked` if the
    /// passphrase is wrong.
    public func unlockVault(passphrase: Password?) async throws {
        if let controller { try await controller.unlockVault(passphrase: passphrase) }
        try await blocking { [home] in
            guard let server = try? ControlSocket.ask(.status, of: home), server.isLocked else { return }
            _ = try ControlSocket.ask(.unlock, secret: passphrase?.secret, of: home)
        }
    }

    /// Closes the vault of this manager's controller and of the home's running server: they answer no challenge until
    /// ``unlockVault(passphrase:)``. Throws `notRunning` if there is neither.
    public func lockVault() async throws {
        if let controller { await controller.lockVault() }
        try await blocking { [home, controller] in
            do {
                _ = try ControlSocket.ask(.lock, of: home)
            } catch let error as CountersignError where error.code == .notRunning && controller != nil {
                // The controller is locked.
            }
        }
    }

    /// Protects the vault with another passphrase, or with a new key file if it is nil. The vault must be open, or the
    /// manager's closure must open it. The former passphrase or key file no longer opens it; other processes that have
    /// it open go on with the secrets that they have loaded, and need the new passphrase for changes. Throws
    /// `valueFaulty` if the passphrase is empty.
    public func rekeyVault(passphrase: Password?) async throws {
        guard passphrase?.secret.count != 0 else {
            throw ChallengeError(
                .valueFaulty, "the new passphrase is empty", hint: "pass nil for a key file", fault: .caller)
        }
        try await vault.withOpenVault { vault in
            do {
                try vault.rekey(to: passphrase.map { .passphrase($0.secret) } ?? .file)
            } catch {
                throw ChallengeError(managing: error, missing: .vaultFaulty)
            }
        }
    }
}

extension ChallengeController {
    /// Whether the vault is locked: no challenge is answered.
    public var isVaultLocked: Bool { keeper.isLocked }

    /// Closes the vault, for example when the screen is locked: no challenge is answered until
    /// ``unlockVault(passphrase:)``. Secrets that were handed out before remain with their receivers.
    public func lockVault() async {
        await reading { $0.lock() }
    }

    /// Opens the vault again; without a passphrase, with its key file. Takes about a second. Throws ``ChallengeError``:
    /// `vaultLocked` if the passphrase is wrong, and the other codes of the vault.
    public func unlockVault(passphrase: Password?) async throws(ChallengeError) {
        let failure = await reading { keeper -> ChallengeError? in
            guard keeper.isLocked else { return nil }
            do {
                try keeper.unlock(passphrase: passphrase?.secret)
                return nil
            } catch {
                return ChallengeError(error)
            }
        }
        if let failure { throw failure }
    }
}
