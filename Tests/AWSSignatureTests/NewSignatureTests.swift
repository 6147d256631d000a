// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAWSSignature

/// What a new signature covers, and with which keys it is made.
@Suite struct NewSignatureTests {
    private static let scope = "20150830/us-east-1/service/aws4_request"
    private static let date = "X-Amz-Date:20150830T123600Z"

    private static func signed(
        _ fields: [String], names: String, leavingOut: Set<String> = [], contentHash: String? = Sample.hash("")
    ) throws -> NewSignature {
        let request = Sample.request(
            "GET", "/", host: "example.amazonaws.com", fields + [date, Sample.authorization(scope, names)])
        let client = try #require(try ClientSignature(of: request))
        return try Sample.keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").sign(
            request, as: client, contentHash: contentHash, leavingOut: leavingOut)
    }

    private static let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"

    @Test func fieldsThatAreWrittenAnewAreNotSigned() throws {
        let plain = try Self.signed([], names: "host;x-amz-date")
        #expect(plain.digits == Self.vanilla)
        let more = try Self.signed(
            ["Connection:close", "Expect:100-continue", "TE:trailers", "Cookie:a=b", "Accept-Encoding:gzip"],
            names: "accept-encoding;connection;cookie;expect;host;te;x-amz-date", leavingOut: ["accept-encoding"])
        #expect(more.digits == Self.vanilla && more.authorization == plain.authorization)
        let kept = try Self.signed(["Accept-Encoding:gzip"], names: "accept-encoding;host;x-amz-date")
        #expect(kept.signedFields == ["accept-encoding", "host", "x-amz-date"] && kept.digits != Self.vanilla)
    }

    /// The client's Host is not what another server gets.
    @Test func theHostIsTheOneThatIsSent() throws {
        #expect(
            try Self.signed(["Host:other.example"], names: "host;x-amz-date").digits == Self.vanilla)
    }

    @Test func aFieldThatIsSignedMustBeThere() {
        let error = #expect(throws: AWSSignatureError.self) {
            try Self.signed([], names: "host;x-amz-date;x-amz-target")
        }
        #expect(error?.code == .malformed && error?.detail.contains("x-amz-target") == true)
    }

    @Test func theHashOfTheContentIsNeededUnlessItIsThere() throws {
        #expect(throws: AWSSignatureError.self) {
            try Self.signed([], names: "host;x-amz-date", contentHash: nil)
        }
        for payload in [Sample.hash("a"), "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
            let signature = try Self.signed(
                ["x-amz-content-sha256:\(payload)"], names: "host;x-amz-date", contentHash: nil)
            #expect(signature.chunkSigner == nil && signature.digits != Self.vanilla)
        }
        // The hash that is sent is the one that is signed.
        #expect(
            try Self.signed(
                ["x-amz-content-sha256:\(Sample.hash(""))"], names: "host;x-amz-date", contentHash: Sample.hash("a")
            ).digits == Self.vanilla)
    }

    @Test(
        arguments: [
            ("", "secret", nil), ("AK/ID", "secret", nil), ("AK,ID", "secret", nil), ("jdoe@acme", "secret", nil),
            ("AKID", "", nil), ("AKID", "secret", ""), ("AKID", "secret", "two words"), ("AKID", "secret", "a\nb"),
        ] as [(String, String, String?)])
    func keysThatAreNotOfAWSAreRefused(id: String, secret: String, token: String?) {
        let error = #expect(throws: AWSSignatureError.self) { try Sample.keys(id, secret, token: token) }
        #expect(error?.code == .keys)
        for text in [id, secret, token ?? ""] where text.count > 3 && text != "secret" {
            #expect(error?.description.contains(text) == false)
        }
    }

    @Test func aPlusSignInTheQueryIsASpace() throws {
        func digits(_ query: String) throws -> String {
            let request = Sample.request(
                "GET", "/?\(query)", host: "example.amazonaws.com",
                [Self.date, Sample.authorization(Self.scope, "host;x-amz-date")])
            let client = try #require(try ClientSignature(of: request))
            return try Sample.keys("AKIDEXAMPLE", "secret").sign(request, as: client, contentHash: "").digits
        }
        #expect(try digits("a=b+c") == digits("a=b%20c"))
        #expect(try digits("b&a") == digits("a=&&b="))
        #expect(try digits("a=b%2Bc") != digits("a=b%20c"))
    }
}
