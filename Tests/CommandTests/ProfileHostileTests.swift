// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

/// Profiles that are damaged, or made to do harm.
@Suite(.waiting) struct ProfileHostileTests {
    private let bench: ProfileSandbox
    private let before: HomeState

    init() throws {
        bench = try ProfileSandbox()
        before = try bench.state()
    }

    private var folder: TemporaryFolder { bench.folder }

    /// Nothing is installed, and the reason contains `reason`.
    private func expectRefusal(_ file: String, _ reason: String, _ what: String) throws {
        let done = try bench.install(file)
        #expect(done.status == 1, "\(what): \(done.said)")
        #expect(done.error.contains(reason), "\(what): \(done.error.prefix(2000))")
        #expect(try bench.state() == before, "\(what)")
    }

    private static func pki(_ name: String) -> String { "\(Tool.repository)/Certs/dev/pki/\(name).pem" }

    private func text(_ content: String, _ payloads: String = "") -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>PayloadType</key><string>Configuration</string>
        <key>PayloadIdentifier</key><string>example.corp</string><key>PayloadContent</key>\(content)</dict></plist>
        """
    }

    @Test func documentsThatAreNoProfilesAreRefused() throws {
        let payload =
            "<dict><key>PayloadType</key><string>a</string><key>PayloadIdentifier</key><string>b</string></dict>"
        let deep = String(repeating: "<array>", count: 10_000) + String(repeating: "</array>", count: 10_000)
        let root = "<key>PayloadType</key><string>com.apple.security.root</string>"
        let table: [(String, [UInt8], String)] = [
            ("empty", [], "does not begin with <plist>"),
            ("binary", Array("bplist00".utf8) + [0xD0, 0, 0], "a binary property list"),
            ("nested", Array(text(deep).utf8), "nested more than 32 deep"),
            ("twice", Array(text("<array>\(payload)\(payload)</array>").utf8), "PayloadIdentifier of another one"),
            ("encrypted", Array(text("<data>AAEC</data>").utf8), "the profile is encrypted"),
            ("cut", Array(text("<array>\(payload)").utf8.dropLast(40)), "cannot be read: line"),
            (
                "not Base64",
                Array(
                    text(
                        "<array><dict>\(root)<key>PayloadIdentifier</key><string>b</string>"
                            + "<key>PayloadContent</key><data>A</data></dict></array>"
                    ).utf8), "cannot be read: line"
            ),
            ("large", [UInt8](repeating: UInt8(ascii: " "), count: 50 << 20), "larger than"),
            ("other CMS", [0x30, 0x03, 0x02, 0x01, 0x00], "neither XML nor signed XML"),
            (
                "loopback",
                Array(
                    text(
                        """
                        <array><dict><key>PayloadType</key><string>countersign.est</string>
                        <key>PayloadIdentifier</key><string>b</string>
                        <key>URL</key><string>http://127.0.0.1:8080/</string></dict></array>
                        """
                    ).utf8), "payload 1 (countersign.est)"
            ),
        ]
        for (what, bytes, reason) in table {
            try expectRefusal(try folder.write("hostile.mobileconfig", bytes), reason, what)
        }
    }

    @Test func certificatesThatAreNoAnchorsAreRefused() throws {
        let chain = try Certificate.readPEM(TextFile.bytes(Self.pki("bad-issuer-expired")))
        let old = try folder.write("old.pem", try #require(chain.last).pem)
        let table: [(String, String)] = [
            (folder.file("laptop.pem"), "CN=laptop,O=Example\" is not a CA certificate"),
            (old, "expired on 2021-01-01"),
        ]
        for (name, reason) in table {
            let file = try bench.write([bench.root, MadeProfile.anchor(name, "example.other")])
            try expectRefusal(file, reason, name)
        }
        let key = MadeProfile.payload(
            "com.apple.security.pem", "example.key", ["PayloadContent": ["file": folder.file("root.key")]])
        try expectRefusal(try bench.write([key]), "the file contains a private key", "a key")
        let junk = try folder.write("junk", "junk")
        let other = MadeProfile.payload(
            "com.apple.security.root", "example.junk", ["PayloadContent": ["file": junk]])
        try expectRefusal(try bench.write([other]), "its certificate cannot be read", "no certificate")
    }

    @Test func filesThatCannotBeIdentitiesAreRefused() throws {
        let costly = try MadeProfile.pkcs12(
            "laptop", password: "secret", flags: ["-iter", "1", "-maciter"], in: folder)
        var bytes = TextFile.bytes(costly)
        // The count of the key's derivation, 1, follows its salt of 16 bytes; it becomes 2^31 - 1 with the lengths as
        // they are if the salt loses three bytes.
        let place = try #require(
            bytes.indices.first { index in
                index + 22 < bytes.count && bytes[index] == 0x04 && bytes[index + 1] == 0x10
                    && bytes[index + 18..<index + 21].elementsEqual([0x02, 0x01, 0x01])
            }
                ?? bytes.indices.first { index in
                    index + 14 < bytes.count && bytes[index] == 0x04 && bytes[index + 1] == 0x08
                        && bytes[index + 10..<index + 13].elementsEqual([0x02, 0x01, 0x01])
                })
        let length = Int(bytes[place + 1])
        bytes[place + 1] = UInt8(length - 3)
        bytes.replaceSubrange(
            place + 2 + length - 3..<place + 2 + length + 3, with: [0x02, 0x04, 0x7F, 0xFF, 0xFF, 0xFF])
        let table: [(String, [UInt8], String)] = [
            ("many iterations", bytes, "which takes too long"),
            ("cut", Array(TextFile.bytes(costly).dropLast(9)), "its identity cannot be read"),
            ("no PKCS#12", TextFile.bytes(folder.file("laptop.pem")), "its identity cannot be read"),
        ]
        for (what, bytes, reason) in table {
            let file = try folder.write("hostile.p12", bytes)
            try expectRefusal(
                try bench.write([MadeProfile.identity(file, "example.laptop", password: "secret")]), reason, what)
        }
    }

    // MARK: Signatures

    private func sign(_ names: String..., flags: [String] = []) throws -> String {
        let plain = try bench.write([bench.root])
        return try MadeProfile.sign(
            plain, as: "signed", by: names.map { (folder.file("\($0).pem"), folder.file("\($0).key")) }, with: flags,
            in: folder)
    }

    @Test func anAlteredProfileIsRefused() throws {
        var bytes = TextFile.bytes(try sign("laptop"))
        let place = try #require(Data(bytes).range(of: Data("example.corp".utf8))?.lowerBound)
        bytes[place] ^= 1
        try expectRefusal(try folder.write("altered", bytes), "the document was altered", "altered")
        try expectRefusal(
            try folder.write("cut", Array(bytes.dropLast(30))), "the profile's signature cannot be read", "cut")
    }

    @Test func aSignatureWithoutSignerOrDocumentIsRefused() throws {
        let plain = try bench.write([bench.root])
        try MadeProfile.openssl(
            [
                "cms", "-sign", "-binary", "-in", plain, "-outform", "DER", "-out", folder.file("detached"), "-signer",
                folder.file("laptop.pem"), "-inkey", folder.file("laptop.key"),
            ], in: folder)
        try expectRefusal(folder.file("detached"), "does not contain what it signs", "detached")
        try MadeProfile.openssl(
            [
                "crl2pkcs7", "-nocrl", "-certfile", folder.file("laptop.pem"), "-outform", "DER", "-out",
                folder.file("unsigned"),
            ], in: folder)
        try expectRefusal(folder.file("unsigned"), "does not contain what it signs", "certificates only")
        try MadeProfile.openssl(
            [
                "cms", "-encrypt", "-binary", "-in", plain, "-outform", "DER", "-out", folder.file("encrypted"),
                "-recip", folder.file("root.pem"), "-keyopt", "ecdh_kdf_md:sha256",
            ], in: folder)
        try expectRefusal(folder.file("encrypted"), "ask for one that is only signed", "encrypted")
    }

    /// The person sees the reason, and decides.
    @Test func signersThatAreNotTrustedAreShownWithTheReason() throws {
        try MadeProfile.certificate("stranger", "/CN=Stranger", extensions: MadeProfile.client, in: folder)
        try bench.succeed("trust", "anchor", "add", folder.file("root.pem"))
        try bench.succeed("trust", "anchor", "add", Self.pki("origin-root"))
        let issuer = ["-certfile", folder.file("intermediate.pem")]
        let old = try MadeProfile.sign(
            try bench.write([bench.root]), as: "expired",
            by: [(Self.pki("bad-expired"), "\(Tool.repository)/Certs/dev/pki/bad-expired.key.pem")],
            with: ["-certfile", Self.pki("origin-intermediate")], in: folder)
        let expired = try bench.succeed("profile", "show", old)
        #expect(
            expired.contains(
                "signed by CN=expired,O=Countersign test, who is not trusted here: certificate has expired"),
            "\(expired)")
        let stranger = try bench.succeed("profile", "show", try sign("stranger"))
        #expect(stranger.contains("signed by CN=Stranger, who is not trusted here: self-signed"), "\(stranger)")
        let both = try bench.succeed("profile", "show", try sign("laptop", "stranger", flags: issuer), "--json")
        #expect(both.contains("signed by CN=laptop,O=Example, verified"), "\(both)")
        #expect(both.contains("signed by CN=Stranger, who is not trusted here"), "\(both)")
        #expect(both.contains("\"trusted\" : false"), "\(both)")
    }
}
