// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAWSSignature

/// What clients send, and what is refused of it.
@Suite struct ClientSignatureTests {
    private static let scope = "20150830/us-east-1/iam/aws4_request"
    private static let date = "X-Amz-Date:20150830T123600Z"
    private static let query =
        "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=countersign%2F20150830%2Fus-east-1%2Fiam%2Faws4_request"
        + "&X-Amz-Date=20150830T123600Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature="
        + Sample.noSignature

    private static func signature(_ fields: [String], target: String = "/") throws -> ClientSignature? {
        try ClientSignature(of: Sample.request("GET", target, host: "iam.amazonaws.com", fields))
    }

    private static func error(_ fields: [String], target: String = "/") -> AWSSignatureError? {
        do {
            _ = try signature(fields, target: target)
            return nil
        } catch {
            return error as? AWSSignatureError
        }
    }

    @Test func theFieldIsRead() throws {
        let field = Sample.authorization(Self.scope, "X-Amz-Date;host")
        for field in [field, field.replacing(", ", with: ","), field.replacing(", ", with: ",  ")] {
            let signature = try #require(try Self.signature([field, Self.date]))
            #expect(signature.place == .field && signature.accessKeyID == Sample.placeholder)
            #expect(signature.scope.text == Self.scope && signature.signedFields == ["host", "x-amz-date"])
            #expect(signature.timestamp.text == "20150830T123600Z" && signature.payload == .content)
        }
    }

    @Test func theAccessKeyIDCanBeReadAlone() {
        let value = Sample.authorization(Self.scope, "host").dropFirst("Authorization:".count)
        #expect(ClientSignature.accessKeyID(inField: value) == Sample.placeholder)
        for other in ["", " ", "Bearer countersign", "AWS4-HMAC-SHA256 Credential=countersign/x"] {
            #expect(ClientSignature.accessKeyID(inField: other) == nil)
        }
    }

    @Test func theQueryIsRead() throws {
        let signature = try #require(try Self.signature([], target: Self.query))
        #expect(signature.place == .query(expiresSeconds: 60) && signature.accessKeyID == Sample.placeholder)
        #expect(signature.scope.text == Self.scope && signature.signedFields == ["host"])
        #expect(signature.payload == .content)
    }

    @Test(arguments: [[], ["Authorization:Bearer AWS4-HMAC-SHA256"], ["X-Amz-Date:20150830T123600Z"]])
    func aRequestMayBeUnsigned(fields: [String]) throws {
        #expect(try Self.signature(fields, target: "/?x-amz-algorithm=1") == nil)
    }

    @Test(
        arguments: [
            ("AWS4-HMAC-SHA256", "does not have Credential"), ("AWS4-HMAC-SHA256 ", "does not have Credential"),
            ("AWS4-HMAC-SHA256 Credential", "list of NAME=VALUE"),
            (
                "AWS4-HMAC-SHA256 Credential=a/\(scope), Credential=a/\(scope), SignedHeaders=host",
                "list of NAME=VALUE"
            ),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope), SignedHeaders=host, Signature=12", "64 hexadecimal digits"),
            ("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=%", "ID/DATE/REGION"),
            ("AWS4-HMAC-SHA256 Credential=/\(scope), SignedHeaders=host, Signature=%", "ID/DATE/REGION"),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope)/b, SignedHeaders=host, Signature=%", "ID/DATE/REGION"),
            (
                "AWS4-HMAC-SHA256 Credential=a/2015083x/r/s/aws4_request, SignedHeaders=host, Signature=%",
                "ID/DATE/REGION"
            ),
            (
                "AWS4-HMAC-SHA256 Credential=a/20150831/r/s/aws4_request, SignedHeaders=host, Signature=%",
                "for another day"
            ),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope), SignedHeaders=x-amz-date, Signature=%", "does not name host"),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope), SignedHeaders=, Signature=%", "list of field names"),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope), SignedHeaders=host;host, Signature=%", "list of field names"),
            ("AWS4-HMAC-SHA256 Credential=a/\(scope), SignedHeaders=host;a:b, Signature=%", "list of field names"),
        ])
    func aMalformedFieldIsRefused(value: String, message: String) {
        let error = Self.error(["Authorization:\(value.replacing("%", with: Sample.noSignature))", Self.date])
        #expect(error?.code == .malformed && error?.detail.contains(message) == true, "\(String(describing: error))")
    }

    @Test(
        arguments: [
            ("X-Amz-Expires=60", "X-Amz-Expires=604801"), ("X-Amz-Expires=60", "X-Amz-Expires=0"),
            ("X-Amz-Expires=60", "X-Amz-Expires=-1"), ("X-Amz-Expires=60", "X-Amz-Expires=x"),
            ("&X-Amz-Expires=60", ""), ("X-Amz-Expires=60", "X-Amz-Expires=60&X-Amz-Expires=60"),
            ("X-Amz-Date=2015", "X-Amz-Date=x"), ("&X-Amz-Date", "&Other"), ("&X-Amz-Signature", "&Other"),
            ("X-Amz-Algorithm", "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Algorithm"),
            ("X-Amz-Date=20150830", "X-Amz-Date=20150829"),
        ])
    func aMalformedQueryIsRefused(old: String, new: String) {
        let error = Self.error([], target: Self.query.replacing(old, with: new))
        #expect(error?.code == .malformed, "\(String(describing: error))")
    }

    @Test func twoSignaturesAreRefused() {
        let field = Sample.authorization(Self.scope, "host")
        for fields in [[field, field], [field], ["Authorization:Basic YQ=="]] {
            let target = fields.count == 1 ? Self.query : "/"
            #expect(Self.error(fields + [Self.date], target: target)?.code == .malformed)
        }
        #expect(Self.error([field, "Authorization:Basic YQ==", Self.date])?.code == .malformed)
    }

    @Test func whatCannotBeSignedAgainIsNamed() {
        let field = Sample.authorization(Self.scope, "host")
        let asymmetric = Self.error([field.replacing("HMAC-SHA256", with: "ECDSA-P256-SHA256"), Self.date])
        #expect(asymmetric?.code == .unsupported && asymmetric?.detail.contains("SigV4A") == true)
        #expect(asymmetric?.hint != nil)
        #expect(Self.error([field.replacing("HMAC-SHA256", with: "HMAC-MD5"), Self.date])?.code == .unsupported)
        for payload in [
            "STREAMING-AWS4-HMAC-SHA256-EVENTS", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "x", "",
        ] {
            let error = Self.error([field, Self.date, "x-amz-content-sha256:\(payload)"])
            #expect(error?.code == .unsupported && error?.hint != nil, "\(payload)")
        }
    }

    @Test(
        arguments: [
            (["Date:Sun, 30 Aug 2015 12:36:00 GMT"], "20150830T123600Z"),
            (["Date:Sun, 30 Aug 2015 12:36:00 -0000"], "20150830T123600Z"),
            (["Date:Sun, 30 Aug 2015 12:36:00 +0200"], ""), (["Date:Sun, 30 Aug 2015 12:36:00GMT"], ""),
            (["Date:Sun, 30 Aug 2015 12:36:01 GMT", date], "20150830T123600Z"), (["Date:20150830T123600Z"], nil),
            (["Date:Sun, 30 Bug 2015 12:36:00 GMT"], ""), (["X-Amz-Date:20150830T246000Z"], ""),
            (["X-Amz-Date:20151330T123600Z"], ""), (["X-Amz-Date:2015-08-30T12:36Z"], ""), ([date, date], ""), ([], ""),
        ] as [([String], String?)])
    func theTimeIsThatOfTheDateFields(fields: [String], expected: String?) throws {
        let all = fields + [Sample.authorization(Self.scope, "host")]
        if expected == "" {
            #expect(Self.error(all)?.code == .malformed)
        } else {
            #expect(try Self.signature(all)?.timestamp.text == expected ?? "20150830T123600Z")
        }
    }

    @Test func aSignatureIsOnlyMadeForThePresent() throws {
        let time: Int64 = 1_440_938_160
        let field = try #require(try Self.signature([Sample.authorization(Self.scope, "host"), Self.date]))
        #expect(field.timestamp.seconds == time)
        let query = try #require(try Self.signature([], target: Self.query))
        for (signature, lifetime) in [(field, Int64(900)), (query, 60)] {
            for now in [time - 900, time, time + lifetime] { #expect(signature.timeFault(at: now) == nil) }
            for now in [time - 901, time + lifetime + 1] { #expect(signature.timeFault(at: now)?.code == .expired) }
        }
    }

    @Test(arguments: [("20000229T000000Z", 951_782_400), ("20991231T235959Z", 4_102_444_799), ("19700101T000000Z", 0)])
    func theSecondsSince1970AreThoseOfTheCalendar(text: String, seconds: Int64) {
        #expect(SignatureTimestamp(text)?.seconds == seconds && SignatureTimestamp(text)?.text == text)
    }
}
