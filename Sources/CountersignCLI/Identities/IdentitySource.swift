// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
import FoundationEssentials

/// The source of an identity for `certificate import`.
enum IdentitySource {
    /// One file with the certificates and the key.
    case file(Piece)
    /// The certificates in one file, the key in another.
    case files(certificates: Piece, key: Piece)
    /// The key in a token; the certificates in a file or, if `certificates` is nil, in the token too.
    case token(TokenURI, certificates: Piece?)

    /// A file's name and contents. The contents are wiped on deinitialisation.
    final class Piece {
        let name: String
        private(set) var bytes: [UInt8]

        init(_ name: String) throws {
            self.name = name
            bytes = try HomeFile(path: name).read(upTo: IdentityFile.maximumBytes)
        }

        deinit { bytes.wipe() }
    }

    /// Reads the files. Does not prompt and does not access a token.
    init(file: String, keyFile: String?) throws {
        guard !TokenURI.isURI(file) else {
            guard keyFile == nil else {
                throw CountersignError(
                    .configuration, "a pkcs11: URI instead of FILE names both the certificate and the key",
                    hint: "pass the file with the certificates, and the URI with --key-file")
            }
            self = .token(try Self.uri(file), certificates: nil)
            return
        }
        guard let keyFile else {
            self = .file(try Piece(file))
            return
        }
        if TokenURI.isURI(keyFile) {
            self = .token(try Self.uri(keyFile), certificates: try Piece(file))
        } else {
            self = .files(certificates: try Piece(file), key: try Piece(keyFile))
        }
    }

    var isToken: Bool { if case .token = self { true } else { false } }

    static func uri(_ text: String) throws -> TokenURI {
        do throws(CertificateError) {
            return try TokenIdentity.uri(text)
        } catch {
            throw CountersignError(
                .configuration, error.detail,
                hint:
                    "use a URI such as 'pkcs11:token=card;id=%01'; list the objects with `p11tool --list-all`"
            )
        }
    }

    /// Reads the identity. Asks `secrets` for the password of an encrypted file or for the token's PIN.
    func read(asking secrets: SecretInput) throws -> ImportedIdentity {
        switch self {
        case .file(let piece):
            let (chain, key) = try piece.opened(asking: secrets, IdentityFile.read)
            return ImportedIdentity(chain: chain, key: .file(key))
        case .files(let certificates, let piece):
            let known = try certificates.naming { () throws(CertificateError) in
                try IdentityFile.readCertificates(certificates.bytes)
            }
            let key = try piece.opened(asking: secrets, IdentityFile.readKey)
            let chain = try piece.naming { () throws(CertificateError) in try IdentityFile.chain(of: key, among: known)
            }
            return ImportedIdentity(chain: chain, key: .file(key))
        case .token(let uri, let certificates):
            let known = try certificates?.naming { () throws(CertificateError) in
                try IdentityFile.readCertificates(certificates?.bytes ?? [])
            }
            let token = TokenIdentity(uri, pin: try secrets.read("the PIN of \(uri)"))
            do throws(CertificateError) {
                return ImportedIdentity(chain: try token.chain(among: known), key: .token(token))
            } catch {
                throw CountersignError(.configuration, error.detail, hint: Self.tokenHint(for: error.code))
            }
        }
    }

    /// The key at `uri`, for a certificate that has yet to be issued. Asks `secrets` for the PIN.
    static func tokenKey(at uri: TokenURI, for name: String, asking secrets: SecretInput) throws -> TokenKey {
        let token = TokenIdentity(uri, pin: try secrets.read("the PIN of \(uri)"))
        do throws(CertificateError) {
            try token.checkKey()
        } catch {
            let hint =
                error.code == .noKey
                ? "generate one with `pkcs11-tool --login --keypairgen --key-type EC:prime256v1 --label … --id …`"
                : tokenHint(for: error.code)
            throw CountersignError(.configuration, error.detail, hint: hint)
        }
        return token.key(named: name)
    }

    private static func tokenHint(for code: CertificateError.Code) -> String? {
        switch code {
        case .noKey: "list the token's objects with `pkcs11-tool --list-objects` or `p11tool --list-all`"
        case .noCertificate: "pass the file with the certificate, and the URI with --key-file"
        case .unavailable:
            "install the token's PKCS#11 module and, with `apt install libengine-pkcs11-openssl`, OpenSSL's engine"
        default: nil
        }
    }
}

extension IdentitySource.Piece {
    /// Calls `read` without a password, and again with one if the file is encrypted.
    fileprivate func opened<Result>(
        asking secrets: SecretInput, _ read: ([UInt8], Secret?) throws(CertificateError) -> Result
    ) throws -> Result {
        do throws(CertificateError) {
            return try read(bytes, nil)
        } catch {
            guard error.code == .passwordNeeded else { throw fault(error) }
        }
        let password = try secrets.read("the password of \(name)")
        return try naming { () throws(CertificateError) in try read(bytes, password) }
    }

    fileprivate func naming<Result>(_ body: () throws(CertificateError) -> Result) throws -> Result {
        do throws(CertificateError) {
            return try body()
        } catch {
            throw fault(error)
        }
    }

    private func fault(_ error: CertificateError) -> CountersignError {
        CountersignError(.configuration, "\(name): \(error.detail)", hint: Self.hint(for: error.code))
    }

    private static func hint(for code: CertificateError.Code) -> String? {
        switch code {
        case .malformed:
            "use PKCS#12 (.p12, .pfx) or PEM with a certificate and its key, or one file for each with --key-file"
        case .noKey: "export the certificate together with its private key, or pass the key with --key-file"
        case .noCertificate:
            "pass the certificate's file and this one with --key-file, or export both together as PKCS#12"
        case .keyMismatch: "export the certificate together with its private key"
        case .wrongPassword, .passwordNeeded, .unsupported, .notPermitted, .unavailable: nil
        }
    }
}

/// An identity that has been read but not yet stored.
struct ImportedIdentity {
    enum Key {
        case file(PrivateKey)
        case token(TokenIdentity)
    }

    /// Leaf first, never empty.
    let chain: [Certificate]
    let key: Key

    var leaf: Certificate { chain[0] }
}
