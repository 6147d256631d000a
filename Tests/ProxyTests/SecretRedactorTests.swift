// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import NIOCore
import Testing

@testable import CountersignHTTP1
@testable import CountersignProxy

@Suite struct SecretRedactorTests {
    private static func redact(_ pieces: [String], _ secret: String) -> [String] {
        var redactor = SecretRedactor(Secret(utf8: secret))
        var output = pieces.map { String(buffer: redactor.redacted(ByteBuffer(string: $0))) }
        output.append(String(buffer: redactor.rest()))
        return output
    }

    @Test func theSecretBecomesAsteriskAndTheRestStays() {
        #expect(Self.redact(["a12345678b12345678"], "12345678") == ["a********b********", ""])
        #expect(Self.redact(["a1234", "5678b"], "12345678") == ["a", "********b", ""])
        // What is held back is not lost.
        #expect(Self.redact(["a1234567"], "12345678") == ["a", "1234567"])
        #expect(Self.redact(["abab", "abac", "x"], "abababac") == ["", "********", "x", ""])
        #expect(Self.redact(["ababab", "abac"], "abababac") == ["", "ab********", ""])
        #expect(Self.redact(["", "1", "", "2345678"], "12345678") == ["", "", "", "********", ""])
    }

    @Test func theBeginningOfASecretIsReplacedAtTheEnd() {
        #expect(Self.redact(["a1234567"], "1234567890") == ["a", "1234567"])
        #expect(Self.redact(["a12345678"], "1234567890") == ["a", "********"])
        #expect(Self.redact(["a1234", "56789"], "1234567890") == ["a", "", "*********"])
        // Other tokens begin so, too.
        #expect(Self.redact(["github_pat_X github_pat_"], "github_pat_Y") == ["github_pat_X ", "***********"])
    }

    @Test func shortSecretsAreLeftAlone() {
        #expect(Self.redact(["abcabc"], "abc") == ["abcabc", ""])
    }

    /// However the content is cut, the result is that of replacing in the whole, from left to right.
    @Test func thePiecesDoNotMatter() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let secret = String(
                (0..<Int.random(in: 8...10, using: &random)).map { _ in "ab".randomElement(using: &random) ?? "a" })
            var text = ""
            for _ in 0..<6 {
                text +=
                    Bool.random(using: &random)
                    ? secret : String((0..<7).map { _ in "ab".randomElement(using: &random) ?? "b" })
            }
            var pieces: [String] = []
            var rest = Substring(text)
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...9, using: &random))
                pieces.append(String(piece))
                rest = rest.dropFirst(piece.count)
            }
            var whole = text.replacing(secret, with: String(repeating: "*", count: secret.count))
            if let cut = (8..<secret.count).reversed().first(where: { whole.hasSuffix(secret.prefix($0)) }) {
                whole = whole.dropLast(cut) + String(repeating: "*", count: cut)
            }
            #expect(Self.redact(pieces, secret).joined() == whole, "\(secret) in \(pieces)")
        }
    }

    @Test func theValuesOfFieldsAreRedactedInPlace() throws {
        let head =
            "HTTP/1.1 200 OK\r\nX-Key: s3cr3t-t0ken!\r\nLocation: /?k=s3cr3t-t0ken!&s3cr3t-t0ken!\r\nX: s3cr3t\r\n\r\n"
        let fields = try #require(try ResponseHead.parse(Array(head.utf8).span.bytes)).head.fields
        Array("s3cr3t-t0ken!".utf8).withUnsafeBytes { fields.redact($0) }
        #expect(fields.values(named: "X-Key") == ["*************"])
        #expect(fields.values(named: "Location") == ["/?k=*************&*************"])
        #expect(fields.values(named: "X") == ["s3cr3t"])
    }
}
