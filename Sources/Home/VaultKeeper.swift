// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignSessionBus
import FoundationEssentials
import Glibc

/// Where a copy of the vault's passphrase is, so that nobody has to type it. The passphrase itself always opens the
/// vault, too, so that nothing is lost with the copy.
///
/// The home's file `vault.keeper` names the place, and contains no secret.
package struct VaultKeeper: Equatable, Sendable {
    package enum Place: String, CaseIterable, Codable, Sendable {
        /// An encrypted credential of systemd, which it decrypts for the service.
        case systemd
        /// The keyring of the desktop: the Secret Service on the session bus.
        case keyring
        /// A TPM 2.0 of this machine.
        case tpm
    }

    package let home: Home
    package let place: Place

    package init(home: Home, place: Place) {
        self.home = home
        self.place = place
    }

    // MARK: The file

    private static let format = 1
    private static let maximumBytes = 4096

    private struct Stored: Codable {
        let format: Int
        let place: String
    }

    private static func file(of home: Home) -> HomeFile { home.file("vault.keeper") }

    /// The home's keeper; nil without one. Throws `configuration` for a file that this version does not understand.
    package static func read(_ home: Home) throws(CountersignError) -> VaultKeeper? {
        guard let bytes = try file(of: home).readIfThere(upTo: maximumBytes) else { return nil }
        guard let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)), stored.format == format,
            let place = Place(rawValue: stored.place)
        else {
            throw CountersignError(
                .configuration, "\(file(of: home).name) does not say where the vault's passphrase is kept",
                hint: "`countersign vault rekey --keep-in keyring` writes it anew; the passphrase opens the vault")
        }
        return VaultKeeper(home: home, place: place)
    }

    /// Makes this the home's keeper.
    package func write() throws(CountersignError) {
        let text = "{\"format\":\(Self.format),\"place\":\"\(place.rawValue)\"}\n"
        try Self.file(of: home).replace(with: Array(text.utf8), mode: 0o600)
    }

    /// Removes the file. The copy stays.
    package static func removeFile(of home: Home) throws(CountersignError) { try file(of: home).remove() }

    // MARK: The copy

    /// How long a keyring may take to answer, with a person who unlocks it.
    package static let patience = Duration.seconds(120)
    /// The same for a running server, for which a command waits.
    package static let servicePatience = Duration.seconds(20)

    /// The passphrase. Blocks. Throws `environment` if the place does not have it, or does not give it out.
    package func passphrase(
        environment: [String: String], patience: Duration = patience
    ) throws(CountersignError) -> Secret {
        switch place {
        case .systemd: try SystemdCredential(home: home).passphrase(environment: environment)
        case .keyring:
            try inKeyring(environment, patience, "the vault's passphrase cannot be read from the keyring") {
                keyring throws(SecretServiceError) in try keyring.secret()
            }
        case .tpm: try SealedPassphrase(home: home).passphrase(environment: environment)
        }
    }

    /// Stores a copy of the passphrase, or replaces it. Throws `environment` if the place cannot have one.
    package func store(_ passphrase: Secret, environment: [String: String]) throws(CountersignError) {
        switch place {
        case .systemd: try SystemdCredential(home: home).store(passphrase)
        case .keyring:
            let label = "Countersign: the vault of \(home.path)"
            try inKeyring(environment, Self.patience, "the keyring does not keep the vault's passphrase") {
                keyring throws(SecretServiceError) in try keyring.store(passphrase, label: label)
            }
        case .tpm: try SealedPassphrase(home: home).store(passphrase, environment: environment)
        }
    }

    /// Removes the copy, if there is one.
    package func remove(environment: [String: String]) throws(CountersignError) {
        switch place {
        case .systemd: try SystemdCredential(home: home).file.remove()
        case .keyring:
            try inKeyring(environment, Self.patience, "the vault's passphrase is still in the keyring") {
                keyring throws(SecretServiceError) in try keyring.remove()
            }
        case .tpm: try SealedPassphrase(home: home).file.remove()
        }
    }

    /// What is left to do so that a server finds the copy; nil if that is nothing.
    package var remark: String? { place == .systemd ? SystemdCredential(home: home).dropIn : nil }

    @discardableResult
    private func inKeyring<Value>(
        _ environment: [String: String], _ patience: Duration, _ failure: String,
        _ body: (SecretService) throws(SecretServiceError) -> Value
    ) throws(CountersignError) -> Value {
        let keyring = SecretService(
            environment: environment,
            attributes: [("application", "countersign"), ("home", HomeFile.resolved(home.path) ?? home.path)],
            limit: patience)
        do throws(SecretServiceError) {
            return try body(keyring)
        } catch {
            throw CountersignError(.environment, "\(failure): \(error.detail)", hint: error.hint)
        }
    }
}
