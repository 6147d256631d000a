// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import Foundation
import Testing

@testable import CountersignProxy

@Suite struct TrustProblemDocumentTests {
    private static let origin = Origin(scheme: .https, host: "fe80::1", port: 8443)

    /// The document, parsed by Foundation.
    private static func read(_ problem: TrustProblemDocument) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(problem.json.utf8)) as? [String: Any])
    }

    private static func leaf() throws -> Certificate {
        let chain = try InterceptionAuthority.throwaway(
            mirroring: nil, host: "a.example", key: try PrivateKey.generateP256(), issuerName: "test",
            at: 1_800_000_000)
        return try #require(chain.first)
    }

    @Test func theDocumentContainsEverythingAClientNeeds() throws {
        let leaf = try Self.leaf()
        let trust = ServerTrust(
            chain: [leaf, leaf], reasons: [.expired(notAfter: 1_700_000_000), .hostMismatch],
            revocation: .unknown("no list is kept"))
        let problem = TrustProblemDocument(
            origin: Self.origin, trust: trust, address: "[fe80::1]:8443", tlsVersion: "TLSv1.3")
        let read = try Self.read(problem)
        #expect(read["type"] as? String == "urn:countersign:server-not-trusted")
        #expect(read["title"] as? String == "The origin's certificate is not trusted")
        #expect(read["status"] as? Int == 502)
        #expect(read["detail"] as? String == "certificate expired 2023-11-14, certificate is for another host")
        #expect(read["host"] as? String == "fe80::1")
        #expect(read["port"] as? Int == 8443)
        #expect(
            read["reasons"] as? [[String: String]] == [
                ["code": "expired", "text": "certificate expired 2023-11-14", "date": "2023-11-14T22:13:20Z"],
                ["code": "host-mismatch", "text": "certificate is for another host"],
            ])
        let fingerprint = try #require(read["fingerprint"] as? String)
        #expect(try CertificateFingerprint.parse(fingerprint) == leaf.sha256Fingerprint)
        #expect(try Certificate.readPEM(Array((read["chain"] as? String ?? "").utf8)) == [leaf, leaf])
        #expect(read["address"] as? String == "[fe80::1]:8443")
        #expect(read["tls"] as? String == "TLSv1.3")
        #expect(read["revocation"] as? [String: String] == ["status": "unknown", "text": "no list is kept"])
        let hint = try #require(read["hint"] as? String)
        #expect(hint.contains("Countersign-Trust: \(fingerprint)"))
        #expect(hint.contains("countersign trust allow [fe80::1]:8443 --fingerprint \(fingerprint)"))
        #expect(problem.response.contentType == "application/problem+json")
        #expect(problem.response.proxyError == "tls_certificate_error")
    }

    @Test func textFromTheOriginCannotBreakTheDocument() throws {
        let nasty = "a \"quoted\" \\ back\u{0}slash\r\n</script> \u{2028} ü\u{7F}\u{1F}"
        let trust = ServerTrust(chain: [], reasons: [.other(nasty)], revocation: .unknown(nasty))
        let read = try Self.read(
            TrustProblemDocument(origin: Self.origin, trust: trust, address: nil, tlsVersion: nil))
        #expect(read["reasons"] as? [[String: String]] == [["code": "other", "text": nasty]])
        #expect(read["revocation"] as? [String: String] == ["status": "unknown", "text": nasty])
        #expect(read["fingerprint"] == nil && read["chain"] == nil && read["address"] == nil && read["hint"] == nil)
    }

    @Test func everyReasonHasItsOwnCodeInKebabCase() {
        let reasons: [ServerTrust.Reason] = [
            .expired(notAfter: 0), .notYetValid(notBefore: 0), .hostMismatch, .selfSigned, .unknownIssuer,
            .incompleteChain, .revoked, .wrongPurpose, .weakKey, .weakSignature, .caAsLeaf, .nameConstraint,
            .pathLength, .other("x"),
        ]
        let codes = reasons.map(\.code)
        #expect(Set(codes).count == reasons.count)
        #expect(codes.allSatisfy { $0.wholeMatch(of: #/[a-z]+(-[a-z]+)*/#) != nil })
        #expect(reasons.map(\.date) == [0, 0] + [Int64?](repeating: nil, count: 12))
    }

    @Test(arguments: [
        (ServerTrust.Revocation.good(by: .stapledOCSP), ["status": "good", "by": "stapled-ocsp"]),
        (.revoked(by: .revocationList), ["status": "revoked", "by": "revocation-list"]),
    ])
    func whoToldOfRevocationIsSaid(_ revocation: ServerTrust.Revocation, _ object: [String: String]) throws {
        let trust = ServerTrust(chain: [], reasons: [], revocation: revocation)
        let read = try Self.read(TrustProblemDocument(origin: Self.origin, trust: trust, address: nil, tlsVersion: nil))
        #expect(read["revocation"] as? [String: String] == object)
    }

    // date -u -d @1700000000 and so on.
    @Test(arguments: [
        (Int64(0), "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"), (-1, "1969-12-31T23:59:59Z"),
    ])
    func timesAreRFC3339(_ seconds: Int64, _ text: String) {
        #expect(WallClock.rfc3339(seconds) == text)
    }
}
