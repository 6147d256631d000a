// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// Failure cases: every fault of a server gives an error that names it.
@Suite(.serialized) struct FaultTests {
    static let responses: [(fault: String, code: EnrollmentError.Code, words: String)] = [
        ("html", .malformedResponse, "the server sent 200 text/html: an HTML page, \"<!DOCTYPE html> <html>"),
        ("empty-pkcs7", .malformedResponse, "no certificate in the PKCS#7 message"),
        ("junk-pkcs7", .malformedResponse, "not a PKCS#7 message"),
        ("pem", .malformedResponse, "200 application/pkcs7-mime; smime-type=certs-only: PEM, \"-----BEGIN PKCS7-----"),
        ("der", .malformedResponse, "DER without base64"),
        ("not-base64", .malformedResponse, "expected base64, the server sent 200 application/pkcs7-mime"),
        ("no-type", .malformedResponse, "expected application/pkcs7-mime, the server sent 200: \"MI"),
        (
            "wrong-type", .malformedResponse,
            "expected application/pkcs7-mime, the server sent 200 application/octet-stream"
        ),
        ("huge", .malformedResponse, "more than 1048576 bytes, beginning with 200 application/pkcs7-mime"),
        ("endless", .malformedResponse, "more than 1048576 bytes"),
        ("500", .refused, "500 text/plain: \"the authority is out of order\""),
        ("503", .refused, "503 text/plain: \"the authority is out of order\""),
        ("403", .refused, "403 text/plain: \"the authority is out of order\""),
        ("302", .refused, "is redirected to \"https://elsewhere.test.localhost/est\" (302), which is not followed"),
        ("not-http", .malformedResponse, "not HTTP/1.1"),
        ("http-0.9", .malformedResponse, "not HTTP/1.1"),
        ("cut-before-status", .cut, "the connection was cut before any response"),
        ("cut-inside-status", .cut, "the connection was cut before any response"),
        ("reset", .cut, "the connection was cut before any response"),
        ("cut-inside-head", .cut, "the connection was cut inside the response's head (200)"),
        ("cut-inside-body", .cut, "the connection was cut inside the response's body (200, 4 of 900 bytes)"),
    ]

    @Test(arguments: responses, ["cacerts", "simpleenroll"])
    func aBadResponseIsReportedWithItsContents(
        expected: (fault: String, code: EnrollmentError.Code, words: String), operation: String
    ) async throws {
        let scene = try Scene(#"{"fault": "\#(expected.fault)", "faultFor": "\#(operation)"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == expected.code, "\(error?.detail ?? "")")
        #expect(error?.detail.contains(expected.words) == true, "\(error?.detail ?? "")")
        try scene.server.set("{}")
        _ = try await scene.identity(from: try scene.client())
    }

    @Test(arguments: [
        ("html", EnrollmentError.Code.malformedResponse), ("500", .refused), ("cut-inside-body", .cut),
        ("pem", .malformedResponse),
    ])
    func badAttributesAreAnError(fault: String, code: EnrollmentError.Code) async throws {
        let scene = try Scene(#"{"fault": "\#(fault)"}"#)
        let client = try scene.client()
        await #expect(throws: EnrollmentError(code, "")) { try await client.requestAttributes() }
    }

    @Test(arguments: ["null", "404"])
    func noAttributesAreNone(content: String) async throws {
        let scene = try Scene(#"{"csrattrs": \#(content)}"#)
        #expect(try await scene.client().requestAttributes() == nil)
    }

    @Test func malformedAttributesAreAnError() async throws {
        let scene = try Scene(#"{"csrattrs": "AAAA"}"#)
        let client = try scene.client()
        await #expect(throws: EnrollmentError(.malformedResponse, "")) { try await client.requestAttributes() }
    }

    static let certificates: [(control: String, words: String)] = [
        (#"{"fault": "other-key"}"#, "a certificate for a different key than the request's: \"CN=stranger\""),
        (#"{"fault": "other-ca"}"#, "does not chain to a trust anchor"),
        (#"{"notAfter": "20210101000000Z"}"#, "which is expired 2021-01-01"),
        (#"{"notBefore": "20480101000000Z", "notAfter": "20490101000000Z"}"#, "which is not valid before 2048-01-01"),
        (#"{"usage": "serverAuth"}"#, "which is not for client authentication"),
    ]

    @Test(arguments: certificates)
    func anUnsuitableCertificateIsNotAccepted(control: String, words: String) async throws {
        let scene = try Scene(control)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .wrongCertificate, "\(error?.detail ?? "")")
        #expect(error?.detail.contains(words) == true, "\(error?.detail ?? "")")
        #expect(error?.isTransient == false)
    }

    @Test func aServerThatDoesNotAnswerTimesOut() async throws {
        let scene = try Scene(#"{"fault": "slow"}"#)
        let error = try await scene.failure(of: try scene.client(limit: .milliseconds(700)))
        #expect(error?.code == .timedOut, "\(error?.detail ?? "")")
        #expect(error?.isTransient == true)
    }

    @Test func aServerThatDoesNotListenIsUnreachable() async throws {
        let scene = try Scene()
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        for address in ["https://127.0.0.1:\(port.number)", "https://nobody.invalid"] {
            let error = try await scene.failure(of: try scene.client(at: address))
            #expect(error?.code == .unreachable, "\(error?.detail ?? "")")
            #expect(error?.isTransient == true)
        }
    }

    @Test func aServerWithoutTLSIsRefused() async throws {
        let scene = try Scene()
        let plain = try ChallengingOrigin(.open, certificate: nil, user: "jdoe", password: "x")
        let error = try await scene.failure(of: try scene.client(at: "https://127.0.0.1:\(plain.port)"))
        #expect(error?.code == .handshakeFailed, "\(error?.detail ?? "")")
    }

    @Test func retryAfterOfAnOverloadedServerIsReported() async throws {
        let scene = try Scene(#"{"fault": "503", "faultFor": "simpleenroll"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.retryAfter == 120)
        #expect(error?.statusCode == 503)
        #expect(error?.isTransient == true)
    }
}
