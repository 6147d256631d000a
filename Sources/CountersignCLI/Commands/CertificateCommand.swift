// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Certificates
import Countersign
import Cryptography
import Foundation
import SitePolicy
import Vault

/// `countersign certificate`.
struct CertificateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certificate",
        abstract: "Import, show or remove client certificates with their keys.",
        subcommands: [Import.self, List.self, Inspect.self, Remove.self])

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take a client certificate and its private key out of a file.",
            discussion: """
                The file is PKCS#12 (.p12, .pfx), or PEM with the certificate and its key, encrypted or not. The key goes into \
                the vault, the chain into Certs/identities; the file stays as it is.

                With --password-stdin the file's password, if it has one, is the first line of standard input, or the second \
                where the vault is opened by a passphrase, which comes first then.

                EXAMPLES:
                  countersign certificate import laptop.p12
                  countersign certificate import --name work --replace client.pem
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Argument(help: ArgumentHelp("PKCS#12 or PEM.", valueName: "file"))
        var file: String

        @Option(help: ArgumentHelp("What to call it. Default: from the certificate's common name.", valueName: "name"))
        var name: String?

        @Flag(help: "Take the place of an identity of that name.")
        var replace = false

        func validate() throws {
            if let name, !IdentityName.isGood(name) {
                throw ValidationError("\(name.debugDescription) is not a name: 1 to 64 of A-Z a-z 0-9 . _ -")
            }
        }

        func run() throws {
            let home = try homeOption.located()
            let door = VaultDoor(home: home, secrets: secrets.input)
            var bytes = try HomeFile(path: file).read(upTo: IdentityFile.maximumBytes)
            defer { SecretInput.wipe(&bytes) }
            // The vault's passphrase stands before the file's password on standard input.
            let vault = try door.openOrCreate()
            let (chain, key) = try read(bytes)
            let name = try self.name ?? IdentityName.from(chain[0])
            try vault.update { contents in
                let chainFile = home.identityChain(named: name)
                let isTaken =
                    try contents.identityKeys[name] != nil || chainFile.readIfThere(upTo: Home.fileLimitBytes) != nil
                guard replace || !isTaken else {
                    throw CountersignError(
                        .nameInUse, "there is an identity \(name.debugDescription) already",
                        hint: "--replace takes its place, --name gives another name")
                }
                try contents.setIdentityKey(
                    .init(name: name, privateKey: key.pkcs8, leafSHA256: chain[0].sha256Fingerprint))
                try chainFile.replace(with: Array(chain.map(\.pem).joined().utf8))
            }
            report(name, chain[0])
        }

        private func read(_ bytes: [UInt8]) throws -> (chain: [Certificate], key: PrivateKey) {
            do throws(CertificateError) {
                return try IdentityFile.read(bytes, password: nil)
            } catch {
                guard error.code == .passwordNeeded else { throw fault(error) }
            }
            let password = try secrets.input.read("the password of \(file)")
            do throws(CertificateError) {
                return try IdentityFile.read(bytes, password: password)
            } catch {
                throw fault(error)
            }
        }

        private func fault(_ error: CertificateError) -> CountersignError {
            CountersignError(.configuration, "\(file): \(error.detail)", hint: Self.hint(for: error.code))
        }

        private static func hint(for code: CertificateError.Code) -> String? {
            switch code {
            case .malformed: "a PKCS#12 file (.p12, .pfx) or PEM with a certificate and its key is wanted"
            case .noKey, .noCertificate, .keyMismatch: "export the certificate together with its private key"
            case .wrongPassword, .passwordNeeded, .unsupported, .notPermitted, .unavailable: nil
            }
        }

        private func report(_ name: String, _ leaf: Certificate) {
            Console.result(
                "identity \"\(name)\" is imported: \(leaf.subject), valid until \(Day.text(leaf.notAfter))\n")
            let now = Int64(time(nil))
            if leaf.notAfter < now {
                Console.warning("the certificate expired \(Day.text(leaf.notAfter)): it answers nothing")
            }
            if leaf.notBefore > now {
                Console.warning("the certificate is not valid before \(Day.text(leaf.notBefore))")
            }
            if !leaf.allowsClientAuthentication || !leaf.allowsDigitalSignature {
                Console.warning("the certificate is not for client authentication: it answers nothing")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the client identities.",
            discussion: """
                EXAMPLES:
                  countersign certificate list
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            let vault = try VaultDoor(home: home, secrets: secrets.input).openIfThere()
            let enrolled = try EnrolledIdentities(keys: vault?.contents.identityKeys ?? [:], home: home)
            if output.json {
                return try Console.result(json: enrolled.identities.map { ShownIdentity($0.name, $0.chain, true) })
            }
            let now = Int64(time(nil))
            let rows = enrolled.identities.map { identity in
                [
                    identity.name, identity.leaf.subject,
                    identity.leaf.notAfter < now
                        ? "expired \(Day.text(identity.leaf.notAfter))" : "until \(Day.text(identity.leaf.notAfter))",
                ]
            }
            Console.result(TextTable(rows: rows).text)
            for fault in enrolled.faults { Console.warning("identity \"\(fault.name)\" is left out: \(fault.reason)") }
        }
    }

    struct Inspect: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show one client identity.",
            discussion: """
                EXAMPLES:
                  countersign certificate inspect laptop
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: JSONOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The identity's name.", valueName: "name"))
        var name: String

        func run() throws {
            let home = try homeOption.located()
            let vault = try VaultDoor(home: home, secrets: secrets.input).openIfThere()
            let keys = vault?.contents.identityKeys ?? [:]
            guard IdentityName.isGood(name), let chain = try home.chain(named: name), let leaf = chain.first else {
                throw try CertificateCommand.unknown(name, home)
            }
            let shown = ShownIdentity(name, chain, keys[name]?.leafSHA256 == leaf.sha256Fingerprint)
            if output.json { return try Console.result(json: shown) }
            Console.result(shown.text)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a client identity, its key included.",
            discussion: """
                EXAMPLES:
                  countersign certificate remove laptop
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The identity's name.", valueName: "name"))
        var name: String

        func run() throws {
            let home = try homeOption.located()
            guard IdentityName.isGood(name) else { throw try CertificateCommand.unknown(name, home) }
            let vault = try VaultDoor(home: home, secrets: secrets.input).openIfThere()
            let hadKey = try vault?.update { $0.removeIdentityKey(named: name) } ?? false
            let hadChain = try home.identityChain(named: name).remove()
            guard hadKey || hadChain else { throw try CertificateCommand.unknown(name, home) }
            Console.result("identity \"\(name)\" is removed\n")
        }
    }

    private static func unknown(_ name: String, _ home: Home) throws -> CountersignError {
        CountersignError(
            .unknownName, "there is no identity \(name.debugDescription)",
            hint: KnownNames.hint(try home.identityNames(), enrolledBy: "certificate import"))
    }
}

/// What an identity may be called: a word of the list, a record of the vault and a file name at once.
private enum IdentityName {
    static func isGood(_ name: String) -> Bool { SiteRule.isStoredName(name) && VaultLimits.isName(name) }

    /// The common name with everything else made `-`.
    static func from(_ certificate: Certificate) throws -> String {
        let commonName = certificate.subject.split(separator: ",").first { $0.hasPrefix("CN=") }?.dropFirst(3) ?? ""
        var name = ""
        for byte in commonName.utf8.prefix(64) {
            let scalar = Unicode.Scalar(byte)
            let isKept = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            if isKept || scalar == "." || scalar == "_" {
                name.unicodeScalars.append(scalar)
            } else if name.last != "-" {
                name.append("-")
            }
        }
        let trimmed = name.trimmingCharacters(in: CharacterSet(charactersIn: "-._"))
        guard isGood(trimmed) else {
            throw CountersignError(
                .configuration, "the certificate \(certificate.subject.debugDescription) has no name to call it by",
                hint: "give one with --name")
        }
        return trimmed
    }
}
