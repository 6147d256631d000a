// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import Testing

@Suite struct SignedMessageTests {
    private static let document = Array("<plist>\r\n<true/>\n</plist>".utf8)

    /// The document, signed by `openssl cms` with an identity of the test certificates.
    private func signed(by name: String, _ arguments: String...) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        try Data(Self.document).write(to: URL(fileURLWithPath: folder.path("document")))
        // The command adds the signer itself.
        let others = try TestPKI.chain(name).dropFirst().map(\.pem).joined()
        try Data(others.utf8).write(to: URL(fileURLWithPath: folder.path("others")))
        let (status, output) = try run(
            "openssl",
            [
                "cms", "-sign", "-binary", "-nodetach", "-signer", TestPKI.path("\(name).pem"), "-inkey",
                TestPKI.path("\(name).key.pem"), "-certfile", folder.path("others"), "-in",
                folder.path("document"), "-outform", "DER", "-out", folder.path("signed"),
            ] + arguments)
        try #require(status == 0, "\(output)")
        return try folder.bytes("signed")
    }

    private func read(_ bytes: [UInt8], _ anchors: [Certificate]) throws -> SignedMessage {
        try SignedMessage(
            bytes, anchors: TrustAnchors(system: false, additional: anchors), at: TestPKI.now)
    }

    @Test func theDocumentAndItsSignerAreRead() throws {
        let message = try signed(by: "client-a")
        #expect(SignedMessage.isSigned(message))
        let trusted = try read(message, TestPKI.chain("client-a-root"))
        #expect(trusted.content == Self.document)
        #expect(try trusted.signers.map(\.certificate) == [TestPKI.leaf("client-a")])
        #expect(trusted.signers.map(\.reason) == [nil])
    }

    @Test func aSignerWithoutAnAnchorIsNamedWithTheReason() throws {
        let message = try read(signed(by: "client-a"), TestPKI.chain("origin-root"))
        #expect(message.content == Self.document)
        #expect(message.signers.map(\.reason) == ["unable to get local issuer certificate"])
    }

    @Test func indefiniteLengthsAreRead() throws {
        let message = try signed(by: "client-a", "-stream")
        #expect(message.prefix(2) == [0x30, 0x80])
        #expect(SignedMessage.isSigned(message))
        #expect(try read(message, []).content == Self.document)
    }

    @Test func anAlteredDocumentIsRefused() throws {
        var message = try signed(by: "client-a")
        let place = try #require(message.indices.first { message[$0...].starts(with: Array("<true/>".utf8)) })
        message[place + 1] = UInt8(ascii: "f")
        #expect(throws: CertificateError(.notPermitted, "")) { try read(message, []) }
    }

    @Test func aMessageWithoutDocumentOrSignatureIsRefused() throws {
        let folder = try TemporaryFolder()
        try openssl(
            "crl2pkcs7", "-nocrl", "-outform", "DER", "-certfile", TestPKI.path("client-a.pem"), "-out",
            folder.path("unsigned"))
        #expect(throws: CertificateError(.malformed, "")) { try read(folder.bytes("unsigned"), []) }
        try Data(Self.document).write(to: URL(fileURLWithPath: folder.path("document")))
        try openssl(
            "cms", "-sign", "-binary", "-signer", TestPKI.path("client-a.pem"), "-inkey",
            TestPKI.path("client-a.key.pem"), "-in", folder.path("document"), "-outform", "DER", "-out",
            folder.path("detached"))
        #expect(throws: CertificateError(.malformed, "")) { try read(folder.bytes("detached"), []) }
        #expect(throws: CertificateError(.malformed, "")) { try read([0x30, 0x00], []) }
        // SignedData with the document "x", and empty sets of algorithms and signatures.
        let unsigned: [UInt8] = [
            0x30, 0x28, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02, 0xA0, 0x1B, 0x30, 0x19, 0x02,
            0x01, 0x01, 0x31, 0x00, 0x30, 0x10, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01, 0xA0,
            0x03, 0x04, 0x01, 0x78, 0x31, 0x00,
        ]
        #expect(throws: CertificateError(.malformed, "")) { try read(unsigned, []) }
    }

    @Test func otherDocumentsAreNotSigned() throws {
        #expect(!SignedMessage.isSigned(Self.document))
        #expect(!SignedMessage.isSigned(try TestPKI.leaf("client-a").der))
        #expect(!SignedMessage.isSigned([]))
    }
}
