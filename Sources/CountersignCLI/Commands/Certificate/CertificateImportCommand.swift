// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignHome
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign certificate import`.
struct CertificateImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import a client certificate and its private key from files or a token.",
        discussion: """
            FILE is PKCS#12 (.p12, .pfx), or PEM with the certificate, its issuers and the key, which may be \
            encrypted. With --key-file, FILE contains only the certificates, in PEM, DER or PKCS#7, and the key file \
            the key, in PEM or DER. The key is stored in the vault and the chain in Certs/identities; the files are \
            not changed.

            A pkcs11: URI (RFC 7512) names a key in a smart card or another token. Pass it as FILE if the token also \
            contains the certificate, or as the key file. The key stays in the token; the PIN is stored in the vault. \
            The module is the URI's module-path, else $PKCS11_MODULE_PATH, else the system's (p11-kit).

            With --password-stdin, standard input contains the vault's passphrase, if it has one, then the file's \
            password or the token's PIN, if it needs one; one per line. Except for a key in a token, the passphrase may \
            be left out while the running `countersign serve` has the vault open.

            EXAMPLES:
              countersign certificate import laptop.p12
              countersign certificate import --name work --replace client.pem
              countersign certificate import chain.pem --key-file client.key
              countersign certificate import 'pkcs11:token=card;id=%01' --name card
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(
        help: ArgumentHelp(
            "A PKCS#12 or PEM file (with --key-file also DER or PKCS#7), or a pkcs11: URI.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp(
            "Read the private key, in PEM or DER or from a pkcs11: URI, if FILE does not contain it.", valueName: "file"
        ))
    var keyFile: String?

    @Option(
        help: ArgumentHelp("The name for the identity. (default: the certificate's common name)", valueName: "name"))
    var name: String?

    @Flag(help: "Replace the identity of that name.")
    var replace = false

    func validate() throws {
        if let name, !IdentityName.isGood(name) {
            throw ValidationError(
                "\(name.debugDescription) is not a name; use 1 to 64 characters from A-Z a-z 0-9 . _ -")
        }
    }

    func run() throws {
        let home = try homeOption.locatedOrNew()
        let access = VaultAccess(home: home, secrets: secrets.input)
        let source = try IdentitySource(file: file, keyFile: keyFile)
        // Opens the vault first, because its passphrase precedes the file's password on standard input.
        // A token's key is only used by the process that has asked for its PIN.
        let session =
            source.isToken
            ? try access.ownSession(creates: true)
            : try access.session(creates: true, readsSecret: true)
        let found = try source.read(asking: secrets.input)
        let name = try self.name ?? IdentityName.from(found.leaf)
        try store(found, as: name, in: session)
        report(name, found.leaf)
    }

    private func store(_ found: ImportedIdentity, as name: String, in session: VaultSession) throws {
        switch found.key {
        case .file(let key):
            _ = try session.perform(
                ImportIdentity(name: name, chain: found.chain, replaces: replace), secret: try key.pkcs8)
        case .token(let token):
            let key = token.key(named: name, leaf: found.leaf)
            try session.operations().importIdentity(name, found.chain, replaces: replace) { contents in
                try contents.setTokenKey(key)
            }
        }
    }

    private func report(_ name: String, _ leaf: Certificate) {
        Console.result(
            "identity \"\(name)\" imported: \(Console.printable(leaf.subject)), "
                + "\(Day.validity(until: leaf.notAfter, now: Int64(time(nil))))\n"
        )
        let now = Int64(time(nil))
        if leaf.notAfter < now {
            Console.warning("the certificate expired on \(Day.text(leaf.notAfter)) and will not be used")
        }
        if leaf.notBefore > now {
            Console.warning("the certificate is not valid until \(Day.text(leaf.notBefore))")
        }
        if !leaf.allowsClientAuthentication || !leaf.allowsDigitalSignature {
            Console.warning("the certificate is not for client authentication and will not be used")
        }
    }
}
