// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAWSSignature

/// The values that AWS publishes for the module's rules.
@Suite struct PublishedVectorTests {
    private static let scope = "20150830/us-east-1/service/aws4_request"
    private static let host = "example.amazonaws.com"
    private static let token =
        "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUu"
        + "wthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8Y"
        + "QcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2IC"
        + "CR/oLxBA=="

    private static func keys(token: String? = nil) throws -> SigningKeys {
        try Sample.keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token: token)
    }

    private static func names(_ fields: [String]) -> Set<String> {
        Set(fields.map { $0.prefix { $0 != ":" }.lowercased() } + ["host"])
    }

    /// The signature in the Authorization field of the client's request with these fields.
    private static func signed(
        _ method: String, _ target: String, _ fields: [String], content: String = "", token: String? = nil
    ) throws -> NewSignature {
        let fields = fields + ["X-Amz-Date:20150830T123600Z"]
        let list = names(fields).sorted().joined(separator: ";")
        let request = Sample.request(
            method, target, host: host, fields + [Sample.authorization(scope, list)])
        let client = try #require(try ClientSignature(of: request))
        return try keys(token: token).sign(request, as: client, contentHash: Sample.hash(content))
    }

    private static func presigned(
        _ method: String, _ target: String, _ fields: [String], content: String = "", token: String? = nil
    ) throws -> NewSignature {
        let list = names(fields).sorted().joined(separator: "%3B")
        let request = Sample.request(
            method,
            "\(target)\(target.contains("?") ? "&" : "?")X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
                + "\(Sample.placeholder)%2F\(scope.split(separator: "/").joined(separator: "%2F"))"
                + "&X-Amz-Date=20150830T123600Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=\(list)"
                + "&X-Amz-Signature=\(Sample.noSignature)",
            host: host, fields)
        let client = try #require(try ClientSignature(of: request))
        return try keys(token: token).sign(request, as: client, contentHash: Sample.hash(content))
    }

    @Test(arguments: PublishedVector.all)
    func theSignatureIsThePublishedOne(vector: PublishedVector) throws {
        // The suite sends the hash of content in a field, but not in a presigned request.
        let hash = vector.content.isEmpty ? [] : ["X-Amz-Content-Sha256:\(Sample.hash(vector.content))"]
        let field = try Self.signed(vector.method, vector.target, vector.fields + hash)
        #expect(field.digits == vector.signature)
        let query = try Self.presigned(vector.method, vector.target, vector.fields, content: vector.content)
        #expect(query.digits == vector.presignedSignature)
    }

    @Test func theWholeFieldIsThePublishedOne() throws {
        #expect(
            try Self.signed("GET", "/", []).authorization
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=host;x-amz-date, "
                + "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
    }

    @Test func aSessionTokenIsSigned() throws {
        let field = try Self.signed("POST", "/", [], token: Self.token)
        #expect(field.digits == "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")
        #expect(field.sessionToken == Secret(utf8: Self.token))
        #expect(field.signedFields == ["host", "x-amz-date", "x-amz-security-token"])
        let query = try Self.presigned("POST", "/", [], token: Self.token)
        #expect(query.digits == "46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c")
    }

    @Test func aClientsSessionTokenIsReplacedOrRemoved() throws {
        let own = ["X-Amz-Security-Token:of-the-client"]
        let replaced = try Self.signed("POST", "/", own, token: Self.token)
        #expect(replaced.digits == "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")
        let removed = try Self.signed("POST", "/", own)
        // That of post-vanilla.
        #expect(removed.digits == "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
        #expect(removed.sessionToken == nil && removed.removedFields.contains("X-Amz-Security-Token"))

        let query = try Self.presigned("POST", "/?X-Amz-Security-Token=of-the-client", [], token: Self.token)
        #expect(query.digits == "46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c")
        let without = try Self.presigned("POST", "/?X-Amz-Security-Token=of-the-client", [])
        #expect(without.digits == "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b")
        #expect(without.target?.contains("Security") == false)
    }
}
