// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAWSSignature

/// Bodies in the coding aws-chunked. The values are those of the S3 API Reference.
@Suite struct ChunkSignerTests {
    private static let signatures = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ]
    private static let signaturesBeforeTrailers = [
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ]
    private static let signatureOfTrailers = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
    private static let placeholders = Array(repeating: String(repeating: "5", count: 64), count: 3)

    private static func signer(hasTrailers: Bool) throws -> ChunkSigner {
        let payload = "x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD\(hasTrailers ? "-TRAILER" : "")"
        let others =
            hasTrailers ? ["x-amz-trailer:x-amz-checksum-crc32c"] : ["content-length:66824"]
        let signature = try S3ExampleTests.signed(
            "PUT", "/examplebucket/chunkObject.txt", host: "s3.amazonaws.com",
            [
                "x-amz-storage-class:REDUCED_REDUNDANCY", "content-encoding:aws-chunked",
                "x-amz-decoded-content-length:66560", payload, S3ExampleTests.date,
            ] + others)
        let seed =
            hasTrailers
            ? "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
            : "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
        #expect(signature.digits == seed)
        return try #require(signature.chunkSigner)
    }

    /// The example's body: 65536 and 1024 times the letter a.
    private static func body(_ signatures: [String], end: String = "\r\n") -> [UInt8] {
        let letters = { (count: Int) in String(repeating: "a", count: count) }
        return Array(
            ("10000;chunk-signature=\(signatures[0])\r\n\(letters(65536))\r\n400;chunk-signature=\(signatures[1])\r\n"
                + "\(letters(1024))\r\n0;chunk-signature=\(signatures[2])\r\n\(end)").utf8)
    }

    private static func trailers(_ signature: String, end: String = "\r\n", separator: String = ":") -> String {
        "x-amz-checksum-crc32c\(separator)sOO8/Q==\(end)x-amz-trailer-signature\(separator)\(signature)\r\n\r\n"
    }

    private static func passed(
        _ body: [UInt8], in sizeBytes: Int, _ signer: ChunkSigner
    ) throws -> [UInt8] {
        var signer = signer
        var output: [UInt8] = []
        for start in stride(from: 0, to: body.count, by: sizeBytes) {
            output += try signer.received(body[start..<min(start + sizeBytes, body.count)])
        }
        try signer.ended()
        return output
    }

    @Test(arguments: [1, 2, 3, 7, 88, 4096, 65536, 100_000])
    func theChunksGetTheSignaturesOfTheExampleInAnySlicing(sizeBytes: Int) throws {
        let signer = try Self.signer(hasTrailers: false)
        let expected = Self.body(Self.signatures)
        // The signer is a value: the second round begins with the request's signature, too.
        for _ in 1...2 {
            #expect(try Self.passed(Self.body(Self.placeholders), in: sizeBytes, signer) == expected)
        }
    }

    @Test(arguments: [1, 5, 1000, 100_000])
    func theTrailersGetTheSignatureOfTheExample(sizeBytes: Int) throws {
        let signer = try Self.signer(hasTrailers: true)
        let digits = Self.placeholders[0]
        for end in ["\r\n", "\n\r\n", "\n"] {
            let body = Self.body(Self.placeholders, end: Self.trailers(digits, end: end))
            let expected = Self.body(
                Self.signaturesBeforeTrailers, end: Self.trailers(Self.signatureOfTrailers, end: end))
            #expect(try Self.passed(body, in: sizeBytes, signer) == expected)
        }
        // An empty line before them, and spaces after the colons, are some clients' habit.
        let body = Self.body(Self.placeholders, end: "\r\n" + Self.trailers(digits, separator: ": "))
        let expected = Self.body(
            Self.signaturesBeforeTrailers, end: "\r\n" + Self.trailers(Self.signatureOfTrailers, separator: ": "))
        #expect(try Self.passed(body, in: sizeBytes, signer) == expected)
    }

    @Test func aChunkGoesOutOnlyWhole() throws {
        var signer = try Self.signer(hasTrailers: false)
        let body = Self.body(Self.placeholders)
        #expect(try signer.received(body[..<65_000]).isEmpty)
        #expect(try signer.received(body[65_000..<66_000]).count == 65536 + 88 + 2)
    }

    @Test(
        arguments: [
            ("0;chunk-signature=12\r\n\r\n", .malformed), ("0\r\n\r\n", .malformed),
            ("xyz;chunk-signature=\(placeholders[0])\r\n", .malformed),
            ("-1;chunk-signature=\(placeholders[0])\r\n", .malformed),
            (";chunk-signature=\(placeholders[0])\r\n", .malformed),
            ("1;chunk-signature=\(placeholders[0]);x=1\r\na\r\n", .malformed),
            ("1;chunk-signature=\(placeholders[0])\na\r\n", .malformed),
            ("1;chunk-signature=\(placeholders[0])\r\nab\r\n", .malformed),
            ("0;chunk-signature=\(placeholders[0])\r\n\r\nmore", .malformed),
            ("0;chunk-signature=\(placeholders[0])\r\n", .malformed), ("", .malformed),
            (String(repeating: "1", count: 200), .malformed),
            ("100001;chunk-signature=\(placeholders[0])\r\n", .tooLarge),
            ("fffffffffffffff;chunk-signature=\(placeholders[0])\r\n", .tooLarge),
            ("ffffffffffffffff;chunk-signature=\(placeholders[0])\r\n", .tooLarge),
        ] as [(String, AWSSignatureError.Code)])
    func aBodyThatIsNotInTheCodingIsRefused(body: String, code: AWSSignatureError.Code) throws {
        let signer = try Self.signer(hasTrailers: false)
        for sizeBytes in [1, 1000] {
            let error = #expect(throws: AWSSignatureError.self) {
                try Self.passed(Array(body.utf8), in: sizeBytes, signer)
            }
            #expect(error?.code == code, "\(String(describing: error))")
        }
    }

    @Test(
        arguments: [
            ("x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n", .malformed), ("no colon\r\n", .malformed),
            ("x-amz-trailer-signature:12\r\n\r\n", .malformed), ("a b:c\r\n", .malformed),
            ("x-amz-trailer-signature:\(placeholders[0])\r\na:b\r\n", .malformed),
            (String(repeating: "a", count: 17_000), .tooLarge),
            (String(repeating: "a:b\r\n", count: 4000), .tooLarge),
        ] as [(String, AWSSignatureError.Code)])
    func trailersThatAreNotSignedFieldsAreRefused(trailers: String, code: AWSSignatureError.Code) throws {
        let signer = try Self.signer(hasTrailers: true)
        let body = Self.body(Self.placeholders, end: trailers)
        let error = #expect(throws: AWSSignatureError.self) { try Self.passed(body, in: 10_000, signer) }
        #expect(error?.code == code, "\(String(describing: error))")
    }
}
