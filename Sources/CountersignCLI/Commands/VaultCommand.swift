// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignReporting
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign vault`.
struct VaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vault",
        abstract: "Manage the vault, the file that contains all secrets.",
        subcommands: [Status.self, Rekey.self, Lock.self, Unlock.self])

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Show the vault's state.",
            discussion: """
                Asks for no passphrase. Without one, the vault is decrypted to find damage, and nothing in it is \
                shown. Exit status 1 if it is damaged, or if its key file is missing or wrong.

                EXAMPLES:
                  countersign vault status --json
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption

        func run() throws {
            let home = try homeOption.located()
            let folder = VaultFolder(home: home.path)
            let vault = SealedVault(storage: folder)
            let status = try vault.status()
            let mode = try folder.permissions(of: .vault) ?? 0
            var server: ControlReply?
            do {
                server = try ControlSocket.ask(.status, of: home)
                server?.operations = nil
                server?.kerberos = nil
            } catch let error as CountersignError where error.code == .notRunning {
                server = nil
            }
            let now = Int64(time(nil))
            let records = try BreakerFile(home: home, now: { now }).read()
            var fault: VaultError?
            do throws(VaultError) { try vault.check() } catch { fault = error }
            var shown = Shown(status, fault, mode: mode, server, BlockedCredential.all(in: records, at: now))
            if status.key == .passphrase { shown.copy = try VaultKeeper.read(home)?.place.rawValue }
            if output.json { try Console.result(json: shown) } else { Console.result(shown.text) }
            if let fault { throw fault }
        }
    }

    struct Rekey: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rekey",
            abstract: "Change the vault's passphrase or key file, and what keeps the passphrase.",
            discussion: """
                The old passphrase or key file no longer opens the vault. A running server continues with the secrets \
                it has loaded; if the vault has a new passphrase, it needs `countersign vault unlock` to load changes.

                --keep-in keyring, systemd or tpm sets a new passphrase, too, and keeps a copy of it, so that nobody \
                has to type it: in the keyring of your desktop, in an encrypted credential of systemd, or sealed by \
                the TPM of this machine. The passphrase itself opens the vault as well, in case the copy is lost.

                With --password-stdin, standard input contains the current passphrase, if there is one, then the new \
                one; one per line.

                EXAMPLES:
                  countersign vault rekey --passphrase
                  countersign vault rekey --keep-in keyring
                  countersign vault rekey --key-file
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Flag(help: "Protect the vault with a new passphrase.")
        var passphrase = false

        @Flag(help: "Protect the vault with a new key file, vault.key.")
        var keyFile = false

        @Option(
            help: ArgumentHelp(
                "Protect the vault with a new passphrase, and keep a copy of it there: systemd, keyring or tpm. file "
                    + "is --key-file, and passphrase is --passphrase.", valueName: "place"))
        var keepIn: Keeping?

        /// What opens the vault.
        enum Keeping: String, ExpressibleByArgument, CaseIterable {
            case systemd, keyring, tpm, file, passphrase

            /// Nil without a copy.
            var place: VaultKeeper.Place? { VaultKeeper.Place(rawValue: rawValue) }
        }

        private var chosen: [Keeping] {
            let options: [Keeping?] = [passphrase ? .passphrase : nil, keyFile ? .file : nil, keepIn]
            return options.compactMap { $0 }
        }

        func validate() throws {
            guard chosen.count == 1 else {
                throw ValidationError("give one of --keep-in, --passphrase and --key-file")
            }
        }

        func run() throws {
            guard let keeping = chosen.first else { return }
            let home = try homeOption.located()
            let vault = try VaultAccess(home: home, secrets: secrets.input).open()
            let environment = ProcessInfo.processInfo.environment
            let former = try? VaultKeeper.read(home)
            if keeping == .file {
                try vault.rekey(to: .file)
                try VaultKeeper.removeFile(of: home)
                Console.result("the vault now has a new key file\n")
            } else {
                let new = try secrets.input.read("the new passphrase", twice: true)
                guard new.count > 0 else {
                    throw VaultError(
                        .passphraseNeeded, "the new passphrase is empty",
                        hint: "choose four random words or more; --key-file needs no passphrase")
                }
                let keeper = keeping.place.map { VaultKeeper(home: home, place: $0) }
                // First, because it is what can fail. If the vault then keeps its former passphrase, that is asked for.
                try keeper?.store(new, environment: environment)
                try vault.rekey(to: .passphrase(new))
                if let keeper { try keeper.write() } else { try VaultKeeper.removeFile(of: home) }
                Console.result("the vault now has a new passphrase\n")
                if let keeper { Self.report(keeper) }
                if let weakness = PassphraseWeakness(of: new) {
                    Console.warning("this passphrase is weak: \(weakness.reason)", hint: PassphraseWeakness.advice)
                }
            }
            Self.forget(former, unless: keeping.place, environment)
        }

        private static func report(_ keeper: VaultKeeper) {
            let place =
                switch keeper.place {
                case .systemd: "an encrypted credential of systemd"
                case .keyring: "the keyring"
                case .tpm: "the TPM"
                }
            Console.result("a copy of it is in \(place); keep the passphrase in case that is lost\n")
            guard let remark = keeper.remark else { return }
            let edit = geteuid() == 0 ? "systemctl edit" : "systemctl --user edit"
            Console.result("`\(edit) countersign.service` with these lines gives it to the service:\n\(remark)\n")
        }

        /// The copy of the former passphrase opens nothing any more.
        private static func forget(
            _ former: VaultKeeper?, unless place: VaultKeeper.Place?, _ environment: [String: String]
        ) {
            guard let former, former.place != place else { return }
            do throws(CountersignError) {
                try former.remove(environment: environment)
            } catch {
                Console.warning("\(error.detail); it no longer opens the vault", hint: error.hint)
            }
        }
    }

    struct Lock: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "lock",
            abstract: "Lock the running server's vault: it answers no challenge until `vault unlock`.",
            discussion: """
                EXAMPLES:
                  countersign vault lock
                """)

        @OptionGroup var homeOption: HomeOption

        func run() throws {
            _ = try ControlSocket.ask(.lock, of: try homeOption.located())
            Console.result("vault locked\n")
        }
    }

    struct Unlock: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "unlock",
            abstract: "Unlock the running server's vault.",
            discussion: """
                EXAMPLES:
                  countersign vault unlock
                  countersign vault unlock --password-stdin < passphrase
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            // Fails if no server is running, before asking for the passphrase.
            _ = try ControlSocket.ask(.status, of: home)
            let needsPassphrase = try SealedVault(home: home.path).status().key == .passphrase
            let access = VaultAccess(home: home, secrets: secrets.input)
            let again = access.again
            if needsPassphrase, try opensWithCopy(home) { return }
            var passphrase = needsPassphrase ? try secrets.input.read("the vault's passphrase") : nil
            while true {
                do {
                    try unlock(home, passphrase)
                    break
                } catch let error as CountersignError where error.code == .wrongPassphrase {
                    guard let next = again?() else { throw error }
                    passphrase = next
                }
            }
            Console.result("vault unlocked\n")
        }

        /// Lets the server use the copy of the passphrase that the home's keeper has, if there is one. Returns whether
        /// that has opened the vault.
        private func opensWithCopy(_ home: Home) throws -> Bool {
            guard !secrets.passwordStdin, try VaultKeeper.read(home) != nil else { return false }
            do {
                try unlock(home, nil)
            } catch let error as CountersignError where error.code == .refused || error.code == .wrongPassphrase {
                Console.warning("the server cannot use the copy of the passphrase: \(error.detail)", hint: error.hint)
                return false
            }
            Console.result("vault unlocked\n")
            return true
        }

        private func unlock(_ home: Home, _ passphrase: Secret?) throws {
            _ = try ControlSocket.ask(.unlock, secret: passphrase, of: home)
        }
    }

    /// The vault's status as text and JSON.
    private struct Shown: Encodable {
        let path: String
        let openedBy: String
        let bytes: Int
        let mode: String
        let hasKeyFile: Bool
        let hasBackup: Bool
        /// The running server of this home, if there is one.
        let server: ControlReply?
        /// Why it cannot be opened; nil if it can be, or if that needs a passphrase.
        let fault: String?
        /// Nil without any.
        let blocked: [BlockedCredential]?
        /// What keeps a copy of the passphrase; nil if nothing does.
        var copy: String?

        private enum CodingKeys: String, CodingKey {
            case path, openedBy, copy, bytes, mode, server, blocked, fault
            case hasKeyFile = "keyFile"
            case hasBackup = "backup"
        }

        init(
            _ status: VaultStatus, _ fault: VaultError?, mode: UInt32, _ server: ControlReply?,
            _ blocked: [BlockedCredential]
        ) {
            self.fault = fault?.detail
            self.blocked = blocked.isEmpty ? nil : blocked
            path = status.location
            openedBy = status.key == .file ? "key file" : "passphrase"
            bytes = status.sizeBytes
            self.mode = String(mode, radix: 8)
            hasKeyFile = status.hasKey
            hasBackup = status.hasBackup
            self.server = server
        }

        var text: String {
            let state = server.map { "process \($0.processIdentifier), \($0.isLocked ? "locked" : "open")" }
            var rows = [["vault", path], ["opened by", openedBy]]
            if let copy { rows.append(["copy in", copy]) }
            rows += [
                ["size", "\(bytes) bytes"], ["mode", mode],
                ["backup", hasBackup ? "yes" : "no"], ["server", state ?? "not running"],
            ]
            if let fault { rows.append(["fault", fault]) }
            for credential in blocked ?? [] { rows.append(["blocked", "\(credential.name): \(credential.sentence)"]) }
            return TextTable(rows: rows).text
        }
    }
}
