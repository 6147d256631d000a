// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAWSSignature

/// The examples of the S3 API Reference: "Examples: Signature Calculations in AWS Signature Version 4", and the one of
/// the page about presigned URLs.
@Suite struct S3ExampleTests {
    static let scope = "20130524/us-east-1/s3/aws4_request"
    static let host = "examplebucket.s3.amazonaws.com"
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    static let date = "x-amz-date:20130524T000000Z"

    static func keys() throws -> SigningKeys {
        try Sample.keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    }

    /// Signs all fields.
    static func signed(_ method: String, _ target: String, host: String = host, _ fields: [String]) throws
        -> NewSignature
    {
        let names = (fields.map { $0.prefix { $0 != ":" }.lowercased() } + ["host"]).sorted()
        let request = Sample.request(
            method, target, host: host, fields + [Sample.authorization(scope, names.joined(separator: ";"))])
        let client = try #require(try ClientSignature(of: request))
        return try keys().sign(request, as: client)
    }

    @Test(
        arguments: [
            (
                "GET", "/test.txt", ["Range:bytes=0-9", "x-amz-content-sha256:\(emptyHash)"],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
            ),
            (
                "PUT", "/test%24file.text",
                [
                    "Date:Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class:REDUCED_REDUNDANCY",
                    "x-amz-content-sha256:44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
                ], "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
            ),
            (
                "GET", "/?lifecycle", ["x-amz-content-sha256:\(emptyHash)"],
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
            ),
            (
                "GET", "/?max-keys=2&prefix=J", ["x-amz-content-sha256:\(emptyHash)"],
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
            ),
        ])
    func theSignatureIsThatOfTheExample(
        method: String, target: String, fields: [String], signature: String
    ) throws {
        #expect(try Self.signed(method, target, fields + [Self.date]).digits == signature)
    }

    /// A path that a client has not encoded has the same canonical form.
    @Test func aPathIsEncodedOnce() throws {
        let fields = ["x-amz-content-sha256:\(Self.emptyHash)", Self.date]
        let encoded = try Self.signed("GET", "/a%24/%C3%A9//.%2F..%20%25", fields).digits
        #expect(try Self.signed("GET", "/a$/é//.%2f.. %25", fields).digits == encoded)
        #expect(try Self.signed("GET", "/a$/é//./.. %25", fields).digits != encoded)
        #expect(try Self.signed("GET", "/a$/é/.%2f.. %25", fields).digits != encoded)
    }

    @Test func aPlusSignInAPathIsNoSpace() throws {
        let fields = ["x-amz-content-sha256:\(Self.emptyHash)", Self.date]
        #expect(try Self.signed("GET", "/a+b", fields).digits == Self.signed("GET", "/a%2Bb", fields).digits)
    }

    /// Only a presigned request may have any content without a word about it.
    @Test func contentThatIsNotDeclaredIsHashed() throws {
        let request = Sample.request(
            "PUT", "/a", host: Self.host, [Self.date, Sample.authorization(Self.scope, "host;x-amz-date")])
        #expect(try ClientSignature(of: request)?.payload == .content)
    }

    @Test func aPresignedURLIsThatOfTheExample() throws {
        let before = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
        let after = "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
        let request = Sample.request(
            "GET", "\(before)\(Sample.placeholder)/\(Self.scope)\(after)\(Sample.noSignature)", host: Self.host, [])
        let client = try #require(try ClientSignature(of: request))
        #expect(client.place == .query(expiresSeconds: 86400) && client.payload == .declared("UNSIGNED-PAYLOAD"))
        #expect(
            try Self.keys().sign(request, as: client).target
                == "\(before)AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\(after)"
                + "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }
}
