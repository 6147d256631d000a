// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Configuration profiles, which Python's plistlib writes and the openssl command signs.
package enum MadeProfile {
    /// A profile with these payloads. `{"file": PATH}` in them is replaced by the bytes of a file, and `{"der": PATH}`
    /// for those of the first certificate in it.
    package static func write(
        _ name: String, identifier: String = "example.corp", displayName: String = "Corp",
        _ payloads: [[String: any Sendable]], in folder: TemporaryFolder
    ) throws -> String {
        let profile: [String: any Sendable] = [
            "PayloadType": "Configuration", "PayloadVersion": 1, "PayloadIdentifier": identifier,
            "PayloadUUID": UUID().uuidString, "PayloadDisplayName": displayName,
            "PayloadOrganization": "Example Corporation", "PayloadContent": payloads,
        ]
        let json = String(decoding: try JSONSerialization.data(withJSONObject: profile), as: UTF8.self)
        let made = try Command.run(
            try Tool.python(), [Tool.server("make_profile.py")], folder: folder.path, input: json, in: folder)
        guard made.status == 0 else { throw HarnessError("make_profile.py: \(made.said)") }
        return try folder.write(name, made.output)
    }

    package static func payload(
        _ type: String, _ identifier: String, _ members: [String: any Sendable] = [:]
    ) -> [String: any Sendable] {
        members.merging(
            [
                "PayloadType": type, "PayloadVersion": 1, "PayloadIdentifier": identifier,
                "PayloadUUID": UUID().uuidString,
            ]
        ) { own, _ in own }
    }

    /// A root, or an intermediate CA.
    package static func anchor(_ certificate: String, _ identifier: String) -> [String: any Sendable] {
        payload("com.apple.security.root", identifier, ["PayloadContent": ["der": certificate]])
    }

    package static func identity(
        _ file: String, _ identifier: String, password: String? = nil
    ) -> [String: any Sendable] {
        var members: [String: any Sendable] = ["PayloadContent": ["file": file]]
        if let password { members["Password"] = password }
        return payload("com.apple.security.pkcs12", identifier, members)
    }

    /// Signs `profile` with one or more certificates, each with the path of its key.
    package static func sign(
        _ profile: String, as name: String, by signers: [(certificate: String, key: String)],
        with flags: [String] = [], in folder: TemporaryFolder
    ) throws -> String {
        let arguments = signers.flatMap { ["-signer", $0.certificate, "-inkey", $0.key] }
        let file = folder.file(name)
        try openssl(
            ["cms", "-sign", "-binary", "-nodetach", "-in", profile, "-outform", "DER", "-out", file] + arguments
                + flags, in: folder)
        return file
    }

    /// A new P-256 key and a certificate for it, NAME.key and NAME.pem: self-signed, or issued by `issuer`.
    @discardableResult
    package static func certificate(
        _ name: String, _ subject: String, extensions: [String], issuer: String? = nil, flags: [String] = [],
        in folder: TemporaryFolder
    ) throws -> (certificate: String, key: String) {
        let (file, key) = (folder.file("\(name).pem"), folder.file("\(name).key"))
        let issuing = issuer.map { ["-CA", folder.file("\($0).pem"), "-CAkey", folder.file("\($0).key")] } ?? []
        try openssl(
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config",
                "/dev/null", "-subj", subject, "-keyout", key, "-out", file,
            ] + extensions.flatMap { ["-addext", $0] } + issuing + flags, in: folder)
        return (file, key)
    }

    /// A PKCS#12 file NAME.p12 with NAME.pem and NAME.key.
    package static func pkcs12(
        _ name: String, password: String, flags: [String] = [], in folder: TemporaryFolder
    ) throws -> String {
        let file = folder.file("\(name).p12")
        try openssl(
            [
                "pkcs12", "-export", "-in", folder.file("\(name).pem"), "-inkey", folder.file("\(name).key"),
                "-passout", "pass:\(password)", "-out", file,
            ] + flags, in: folder)
        return file
    }

    package static let authority = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
    package static let client = [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "extendedKeyUsage=clientAuth",
    ]

    package static func openssl(_ arguments: [String], in folder: TemporaryFolder) throws {
        let done = try Command.run(try Tool.path("openssl"), arguments, folder: folder.path, in: folder)
        guard done.status == 0 else { throw HarnessError("openssl \(arguments.first ?? ""): \(done.said)") }
    }
}
