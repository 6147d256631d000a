// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignCertificates

/// The weaknesses of self-signed certificates of the openssl command.
struct AnchorWeaknessTests {
    private static let sound = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]
    private static let p256 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

    @Test(
        arguments: [
            (p256, sound, "-sha256", []),
            (["-newkey", "rsa:2048"], sound, "-sha384", []),
            (["-newkey", "rsa:1024"], sound, "-sha256", ["its key is RSA 1024"]),
            (
                ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp224r1"], sound, "-sha256",
                ["its key is EC secp224r1"]
            ),
            (p256, sound, "-sha1", ["its signature is ecdsa-with-SHA1"]),
            (p256, Array(sound.prefix(1)), "-sha256", ["it has no key usage"]),
            (
                ["-newkey", "rsa:1024"], Array(sound.prefix(1)), "-sha1",
                ["its key is RSA 1024", "its signature is sha1WithRSAEncryption", "it has no key usage"]
            ),
        ] as [([String], [String], String, [String])])
    func weakAnchorsAreDescribed(key: [String], extensions: [String], hash: String, expected: [String]) throws {
        #expect(try anchor(key, extensions, hash).weaknessesAsAnchor == expected)
    }

    @Test func aDSAKeyIsWeak() throws {
        let folder = try TemporaryFolder()
        try openssl(
            "genpkey", "-quiet", "-genparam", "-algorithm", "DSA", "-pkeyopt", "dsa_paramgen_bits:2048", "-out",
            folder.path("parameters"))
        try openssl("genpkey", "-quiet", "-paramfile", folder.path("parameters"), "-out", folder.path("key"))
        let found = try anchor(["-key", folder.path("key")], Self.sound, "-sha256").weaknessesAsAnchor
        #expect(found == ["its key is DSA 2048"])
    }

    private func anchor(_ key: [String], _ extensions: [String], _ hash: String) throws -> Certificate {
        let folder = try TemporaryFolder()
        // No extensions of openssl.cnf.
        let settings = try folder.write("settings", "[req]\ndistinguished_name=name\n[name]\n")
        let made = try run(
            "openssl",
            ["req", "-x509", "-config", settings, "-nodes", "-subj", "/CN=anchor", "-days", "10", hash]
                + ["-keyout", folder.path("made.key"), "-out", folder.path("anchor.pem")] + key
                + extensions.flatMap { ["-addext", $0] })
        try #require(made.status == 0, "\(made.output)")
        return try #require(try Certificate.readPEM(folder.bytes("anchor.pem")).first)
    }
}
