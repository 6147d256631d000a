// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import Countersign
import CountersignCryptography
import Glibc
import CountersignVault

/// `countersign certificate import`.
struct CertificateImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Take a client certificate and its private key out of files, or out of a token.",
        discussion: """
            The file is PKCS#12 (.p12, .pfx), or PEM with the certificate, its issuers and its key, encrypted or not. With \
            --key-file it has the certificates alone, in PEM, DER or PKCS#7, and the other file the key, in PEM or DER. The \
            key goes into the vault, the chain into Certs/identities; the files stay as they are.

            A pkcs11: URI (RFC 7512) names a key in a smart card or another token, and stands in the place of the file, \
            where the token has the certificate too, or of the key's. The key stays in the token, the PIN goes into the \
            vault. The module is the URI's module-path, else $PKCS11_MODULE_PATH, else the system's (p11-kit).

            With --password-stdin the file's password, if it has one, or the PIN is the first line of standard input, or the \
            second where the vault is opened by a passphrase, which comes first then.

            EXAMPLES:
              countersign certificate import laptop.p12
              countersign certificate import --name work --replace client.pem
              countersign certificate import chain.pem --key-file client.key
              countersign certificate import 'pkcs11:token=card;id=%01' --name card
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(
        help: ArgumentHelp("PKCS#12, PEM, or with --key-file also DER or PKCS#7; or a pkcs11: URI.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp("The private key in PEM or DER, or a pkcs11: URI, when FILE has it not.", valueName: "file"))
    var keyFile: String?

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
        let source = try IdentitySource(file: file, keyFile: keyFile)
        // The vault's passphrase stands before the file's password on standard input.
        let vault = try door.openOrCreate()
        let found = try source.read(asking: secrets.input)
        let name = try self.name ?? IdentityName.from(found.leaf)
        try keep(found, as: name, in: vault, home)
        report(name, found.leaf)
    }

    /// Both halves, or neither.
    private func keep(_ found: FoundIdentity, as name: String, in vault: OpenVault, _ home: Home) throws {
        let chainFile = home.identityChain(named: name)
        let before = try chainFile.readIfThere(upTo: Home.fileLimitBytes)
        var isWritten = false
        do {
            try vault.update { contents in
                let isKnown =
                    contents.identityKeys[name] != nil || contents.tokenKeys[name] != nil
                    || contents.plan(of: name) != nil
                guard replace || (!isKnown && before == nil) else {
                    throw CountersignError(
                        .nameInUse, "there is an identity \(name.debugDescription) already",
                        hint: "--replace takes its place, --name gives another name")
                }
                _ = contents.removeIdentity(named: name)
                try found.keep(in: &contents, as: name)
                isWritten = true
                try chainFile.replace(with: Array(found.chain.map(\.pem).joined().utf8))
            }
        } catch {
            guard isWritten else { throw error }
            if let before { try chainFile.replace(with: before) } else { try chainFile.remove() }
            throw error
        }
    }

    private func report(_ name: String, _ leaf: Certificate) {
        Console.result(
            "identity \"\(name)\" is imported: \(Console.printable(leaf.subject)), valid until \(Day.text(leaf.notAfter))\n"
        )
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
