// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation

/// A user's interception CA with its keys, as a thief of the vault would have it.
enum StolenCA {
    static func of(_ user: Countersign) throws -> InterceptionAuthority {
        let home = Home(path: user.home)
        let vault = try SealedVault(home: user.home).openOrCreate {
            throw HarnessError("unexpected request for a passphrase")
        }
        return try InterceptionStore(home: home).authority(
            for: InterceptionStore.hosts(of: home.sites()), in: vault, at: Int64(Date().timeIntervalSince1970)
        ).authority
    }

    /// PKCS#8 in PEM.
    static func pem(_ key: PrivateKey) throws -> String {
        let text = try key.pkcs8.withBytes { Base64.encode(Array($0)) }
        return "-----BEGIN PRIVATE KEY-----\n\(text)\n-----END PRIVATE KEY-----\n"
    }
}

/// Signs with a stolen issuing key, using only the openssl command. The files exist as long as this value.
struct Forger {
    private let folder: TemporaryFolder

    private static let leaf = """
        basicConstraints=critical,CA:FALSE
        keyUsage=critical,digitalSignature
        extendedKeyUsage=serverAuth
        subjectKeyIdentifier=hash
        authorityKeyIdentifier=keyid

        """
    private static let authority = """
        basicConstraints=critical,CA:TRUE
        keyUsage=critical,keyCertSign
        subjectKeyIdentifier=hash
        authorityKeyIdentifier=keyid

        """

    init(_ stolen: InterceptionAuthority, in folder: TemporaryFolder) throws {
        self.folder = folder
        for (part, certificate) in stolen.issuing.enumerated() {
            try folder.write("issuing-\(part).pem", certificate.pem)
            try folder.write("issuing-\(part).key.pem", try StolenCA.pem(stolen.issuingKey))
        }
    }

    /// A chain for `names` (in openssl's configuration syntax) below the issuing certificate at `part`, or below an
    /// intermediate CA of the forger's.
    func chain(
        _ name: String, names: String, part: Int = 0, belowOwnAuthority: Bool = false
    ) throws -> ChainOrigins.Chain {
        var issuer = "issuing-\(part)"
        var above = folder.text("\(issuer).pem")
        if belowOwnAuthority {
            try sign("\(name)-authority", Self.authority, by: issuer)
            issuer = "\(name)-authority"
            above = folder.text("\(issuer).pem") + above
        }
        try sign(name, Self.leaf + "subjectAltName=\(names)\n", by: issuer)
        try folder.write("\(name).chain.pem", folder.text("\(name).pem") + above)
        return ChainOrigins.Chain(
            name, certificate: folder.file("\(name).chain.pem"), key: folder.file("\(name).key.pem"))
    }

    private func sign(_ name: String, _ extensions: String, by issuer: String) throws {
        try folder.write("\(name).ext", extensions)
        try openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)",
            "-keyout", "\(name).key.pem", "-out", "\(name).csr")
        try openssl(
            "x509", "-req", "-in", "\(name).csr", "-CA", "\(issuer).pem", "-CAkey", "\(issuer).key.pem", "-days", "5",
            "-extfile", "\(name).ext", "-out", "\(name).pem")
    }

    private func openssl(_ arguments: String...) throws {
        let done = try Command.run(Tool.path("openssl"), arguments, folder: folder.path, in: folder)
        guard done.status == 0 else { throw HarnessError("openssl \(arguments[0]): \(done.said)") }
    }
}
