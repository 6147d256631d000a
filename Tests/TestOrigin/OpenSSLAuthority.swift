// SPDX-License-Identifier: Apache-2.0

/// Certificate authorities with revocation lists and OCSP responses, managed with the openssl command in a temporary
/// folder.
///
/// Every certificate `NAME` is `NAME.pem`, its key `NAME.key.pem`, valid from 2024 to 2044. Each issuer has its own
/// database.
package final class OpenSSLAuthority: Sendable {
    private let folder: TemporaryFolder

    package init() throws { folder = try TemporaryFolder("authority") }

    package static let authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
    package static let server = [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "extendedKeyUsage=serverAuth",
        "subjectAltName=DNS:localhost",
    ]
    package static let responder = [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "extendedKeyUsage=OCSPSigning",
    ]
    /// RFC 7633: status_request.
    package static let mustStaple = "tlsfeature=status_request"

    package func path(_ name: String) -> String { folder.file(name) }

    package func bytes(_ name: String) -> [UInt8] { TextFile.bytes(path(name)) }

    /// Creates a key, of a type that `openssl req -newkey` accepts, and a certificate signed by `issuer`; for a root
    /// that is `name` itself.
    package func make(
        _ name: String, of issuer: String, _ extensions: [String], until: String = "20440101000000Z",
        key: [String] = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    ) throws {
        if issuer == name { try openDatabase(of: name) }
        try openssl(
            ["req", "-new", "-newkey"] + key + [
                "-nodes", "-subj", "/CN=\(name)", "-keyout", path("\(name).key.pem"), "-out", path("\(name).csr"),
            ])
        let identifiers = ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"]
        try folder.write("\(name).ext", (extensions + identifiers).joined(separator: "\n") + "\n")
        try openssl(
            authority(issuer) + [
                "-in", path("\(name).csr"), "-extfile", path("\(name).ext"), "-startdate", "20240101000000Z",
                "-enddate", until, "-out", path("\(name).pem"),
            ] + (issuer == name ? ["-selfsign"] : []))
        if issuer != name, extensions.contains(where: { $0.hasSuffix("CA:TRUE") }) { try openDatabase(of: name) }
    }

    /// Creates `file` as another certificate of `name`, by another issuer.
    package func certify(_ name: String, of issuer: String, as file: String, _ extensions: [String]) throws {
        let identifiers = ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"]
        try folder.write("\(file).ext", (extensions + identifiers).joined(separator: "\n") + "\n")
        try openssl(
            authority(issuer) + [
                "-in", path("\(name).csr"), "-extfile", path("\(file).ext"), "-startdate", "20240101000000Z",
                "-enddate", "20440101000000Z", "-out", path("\(file).pem"),
            ])
    }

    /// `reason` is one of `openssl ca -crl_reason`.
    package func revoke(_ name: String, of issuer: String, because reason: String? = nil) throws {
        try openssl(
            authority(issuer) + ["-revoke", path("\(name).pem")] + (reason.map { ["-crl_reason", $0] } ?? []))
    }

    /// The OCSP request of openssl for `leaf`, without nonce, in DER.
    package func makeRequest(_ file: String, about leaf: String, of issuer: String) throws -> [UInt8] {
        try openssl(
            [
                "ocsp", "-issuer", path("\(issuer).pem"), "-cert", path("\(leaf).pem"), "-no_nonce", "-reqout",
                path(file),
            ])
        return bytes(file)
    }

    /// The current revocation list of `issuer` in PEM. Dates have the form `20260101000000Z`.
    package func makeList(_ file: String, of issuer: String, from: String, until: String) throws -> [UInt8] {
        try openssl(
            authority(issuer) + ["-gencrl", "-crl_lastupdate", from, "-crl_nextupdate", until, "-out", path(file)])
        return bytes(file)
    }

    /// The current OCSP response of `issuer` for `leaf`, in DER. `identifiedBy` is the hash algorithm of the
    /// certificate identifier, and `flags` are passed to openssl.
    package func makeResponse(
        _ file: String, about leaf: String, of issuer: String, signedBy signer: String,
        identifiedBy hash: String = "sha1", flags: [String] = ["-ndays", "1"]
    ) throws -> [UInt8] {
        try openssl(
            [
                "ocsp", "-index", path("\(issuer).index"), "-CA", path("\(issuer).pem"), "-rsigner",
                path("\(signer).pem"),
                "-rkey", path("\(signer).key.pem"), "-issuer", path("\(issuer).pem"), "-\(hash)", "-cert",
                path("\(leaf).pem"), "-respout", path(file), "-noverify",
            ] + flags)
        return bytes(file)
    }

    /// The OCSP response of `issuer` to a request, both in DER.
    package func makeResponse(
        _ name: String, to request: [UInt8], of issuer: String, signedBy signer: String
    ) throws -> [UInt8] {
        try folder.write("\(name).request", request)
        try openssl(
            [
                "ocsp", "-index", path("\(issuer).index"), "-CA", path("\(issuer).pem"), "-rsigner",
                path("\(signer).pem"), "-rkey", path("\(signer).key.pem"), "-reqin", path("\(name).request"),
                "-respout", path("\(name).response"), "-ndays", "1", "-noverify",
            ])
        return bytes("\(name).response")
    }

    private func openDatabase(of issuer: String) throws {
        try folder.write("\(issuer).index", "")
        try folder.write("\(issuer).crlnumber", "01\n")
        try folder.write(
            "\(issuer).cnf",
            """
            [ca]
            default_ca = own
            [own]
            database = \(path("\(issuer).index"))
            crlnumber = \(path("\(issuer).crlnumber"))
            crl_extensions = crl
            new_certs_dir = \(folder.path)
            rand_serial = yes
            unique_subject = no
            default_md = sha256
            policy = any
            [any]
            commonName = supplied
            [crl]
            authorityKeyIdentifier = keyid

            """)
    }

    private func authority(_ issuer: String) -> [String] {
        [
            "ca", "-batch", "-notext", "-config", path("\(issuer).cnf"), "-keyfile", path("\(issuer).key.pem"), "-cert",
            path("\(issuer).pem"),
        ]
    }

    private func openssl(_ arguments: [String]) throws {
        let done = try Command.run(try Tool.path("openssl"), arguments, in: folder)
        guard done.status == 0 else { throw HarnessError("openssl \(arguments.joined(separator: " ")): \(done.said)") }
    }
}
