// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignCertificates

/// The anchors of a file, with `openssl verify` for the same file as the oracle.
struct AnchorFileTests {
    private static func trusts(_ anchors: TrustAnchors, _ name: String = "origin-ec") throws -> Bool {
        try ChainVerifier(anchors: anchors).evaluate(chain: TestPKI.chain(name), host: "localhost", at: TestPKI.now)
            .isTrusted
    }

    private static func trusts(_ path: String, _ additional: [Certificate] = []) throws -> Bool {
        try trusts(TrustAnchors(file: path, folder: false, additional: additional))
    }

    /// The result of `openssl verify`, which reads the whole file at once.
    private static func openSSLTrusts(_ path: String) throws -> Bool {
        let chain = TestPKI.path("origin-ec.pem")
        return try run(
            "openssl",
            [
                "verify", "-CAfile", path, "-no-CApath", "-no-CAstore", "-purpose", "sslserver", "-attime",
                "\(TestPKI.now)", "-untrusted", chain, chain,
            ]
        ).status == 0
    }

    private static func text(_ name: String) throws -> String {
        String(decoding: try TestPKI.bytes(name + ".pem"), as: UTF8.self)
    }

    /// The root as a TRUSTED CERTIFICATE.
    private static func root(_ purposes: String...) throws -> String {
        try run("openssl", ["x509", "-in", TestPKI.path("origin-root.pem"), "-trustout"] + purposes).output
    }

    /// A block whose DER is truncated before the subject.
    private static let cutOff = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIB\n-----END CERTIFICATE-----\n"

    private static func files() throws -> [(name: String, text: String, counts: Bool)] {
        let root = try text("origin-root")
        let other = try text("client-a-root")
        let key = String(decoding: try TestPKI.bytes("origin-ec.key.pem"), as: UTF8.self)
        let lines = root.split(separator: "\n")
        return [
            ("alone", root, true), ("nothing", "", false), ("another", other, false),
            ("between others", other + root + other, true), ("twice", root + root, true),
            ("among text", "# anchors\n\n" + root + "\nend", true),
            ("CR LF", root.replacingOccurrences(of: "\n", with: "\r\n"), true),
            ("no line end", String(root.dropLast()), true),
            ("long lines", "\(lines[0])\n\(lines[1])\(lines[2])\n\(lines[3...].joined(separator: "\n"))\n", true),
            ("old label", root.replacingOccurrences(of: " CERTIFICATE", with: " X509 CERTIFICATE"), true),
            ("beside a key", key + root, true),
            ("for servers", try Self.root("-addtrust", "serverAuth"), true),
            ("for clients", try Self.root("-addtrust", "clientAuth"), false),
            ("not for servers", try Self.root("-addreject", "serverAuth"), false),
            ("not for servers, then plain", try Self.root("-addreject", "serverAuth") + root, false),
            ("plain, then not for servers", root + (try Self.root("-addreject", "serverAuth")), true),
            ("cut off behind", root + lines[..<3].joined(separator: "\n") + "\n", false),
            ("no base64 behind", root + "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", false),
            ("DER cut off before", cutOff + root, false), ("DER cut off behind", root + cutOff, false),
            ("other ends", root.replacingOccurrences(of: "END CERTIFICATE", with: "END X509 CRL"), false),
        ]
    }

    @Test func aFileCountsAsItDoesForOpenSSL() throws {
        let folder = try TemporaryFolder()
        for file in try Self.files() {
            let path = try folder.write("anchors.pem", file.text)
            #expect(try Self.trusts(path) == file.counts, "\(file.name)")
            #expect(try Self.openSSLTrusts(path) == file.counts, "\(file.name), for openssl verify")
        }
    }

    @Test func aFileThatIsCreatedLaterIsRead() throws {
        let folder = try TemporaryFolder()
        let anchors = try TrustAnchors(file: folder.path("anchors.pem"), folder: false, additional: [])
        #expect(try !Self.trusts(anchors))
        try folder.write("anchors.pem", Self.text("origin-root"))
        #expect(try Self.trusts(anchors))
        try folder.write("anchors.pem", "")
        #expect(try Self.trusts(anchors))
    }

    @Test(arguments: ["/nonexistent", "/", "/dev/null"])
    func aMissingFileHasNoAnchors(_ path: String) throws {
        #expect(try !Self.trusts(path))
        #expect(try Self.trusts(path, TestPKI.chain("origin-root")))
    }

    /// Two CAs of the same name, one of them an additional anchor: the order of the look-ups must not matter.
    @Test func anAnchorDoesNotHideAnotherOfTheSameName() throws {
        let folder = try TemporaryFolder()
        let names = ["first", "second"]
        var chains: [[Certificate]] = []
        var roots: [Certificate] = []
        for name in names {
            try openssl(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
                "-subj", "/CN=One name", "-keyout", folder.path("\(name).key"), "-out", folder.path("\(name).pem"),
                "-addext", "keyUsage=critical,keyCertSign")
            try folder.write(
                "leaf.ext", "subjectAltName=DNS:localhost\nauthorityKeyIdentifier=keyid\nextendedKeyUsage=serverAuth")
            try openssl(
                "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=leaf",
                "-keyout", folder.path("leaf.key"), "-out", folder.path("leaf.csr"))
            try openssl(
                "x509", "-req", "-in", folder.path("leaf.csr"), "-CA", folder.path("\(name).pem"), "-CAkey",
                folder.path("\(name).key"), "-days", "365", "-extfile", folder.path("leaf.ext"), "-out",
                folder.path("\(name)-leaf.pem"))
            roots += try Certificate.readPEM(folder.bytes("\(name).pem"))
            chains.append(try Certificate.readPEM(folder.bytes("\(name)-leaf.pem")))
        }
        for order in [[0, 1], [1, 0]] {
            for (file, additional) in [("second", [roots[0]]), ("first", [roots[1]])] {
                let anchors = try TrustAnchors(file: folder.path("\(file).pem"), folder: false, additional: additional)
                let verifier = ChainVerifier(anchors: anchors)
                for index in order {
                    let reasons = verifier.evaluate(
                        chain: chains[index], host: "localhost", at: TestPKI.today + 1
                    ).reasons
                    #expect(reasons == [], "\(names[index]), with \(file) in the file")
                }
            }
        }
    }

    @Test func manyThreadsMayBeTheFirst() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("anchors.pem", Self.text("client-a-root") + Self.text("origin-root"))
        for _ in 0..<20 {
            let anchors = try TrustAnchors(file: path, folder: false, additional: [])
            let trusted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 { group.addTask { try Self.trusts(anchors) } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(trusted == 8)
        }
    }
}
