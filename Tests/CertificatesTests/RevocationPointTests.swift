// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import CountersignCertificates

/// The locations that certificates name, and the requests to them. openssl makes the certificates and the expected
/// request.
struct RevocationPointTests {
    private let authority: OpenSSLAuthority

    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
    }

    private func points(_ extensions: [String]) throws -> [RevocationPoint] {
        try authority.make("leaf", of: "root", OpenSSLAuthority.server + extensions)
        return try #require(try Certificate.readPEM(authority.bytes("leaf.pem")).first).revocationPoints
    }

    @Test func respondersComeBeforeLists() throws {
        let found = try points([
            "crlDistributionPoints=URI:http://crl.example/a.crl,URI:http://crl.example/b.crl",
            "authorityInfoAccess=caIssuers;URI:http://ca.example/ca.der,OCSP;URI:http://ocsp.example/x",
        ])
        #expect(
            found == [
                .responder(url: "http://ocsp.example/x"), .list(url: "http://crl.example/a.crl"),
                .list(url: "http://crl.example/b.crl"),
            ])
        #expect(found.map(\.url) == ["http://ocsp.example/x", "http://crl.example/a.crl", "http://crl.example/b.crl"])
    }

    @Test func aCertificateWithoutTheExtensionsNamesNothing() throws { #expect(try points([]).isEmpty) }

    @Test func onlyTwoOfEachKindAreKept() throws {
        let found = try points([
            "crlDistributionPoints=" + (0..<5).map { "URI:http://crl.example/\($0)" }.joined(separator: ","),
            "authorityInfoAccess=" + (0..<5).map { "OCSP;URI:http://ocsp.example/\($0)" }.joined(separator: ","),
        ])
        #expect(found.map(\.url.last) == ["0", "1", "0", "1"])
    }

    @Test func otherSchemesAndLongURLsAreIgnored() throws {
        let long = "http://crl.example/" + String(repeating: "a", count: 1024)
        let found = try points([
            "crlDistributionPoints=URI:ldap://crl.example/cn,URI:https://crl.example/a,URI:\(long)"
                + ",URI:HTTP://crl.example/b",
            "authorityInfoAccess=OCSP;DNS:ocsp.example,OCSP;URI:file:///etc/passwd",
        ])
        #expect(found == [.list(url: "HTTP://crl.example/b")])
    }

    /// RFC 5280 §4.2.1.13: a point with reasons, one with a cRLIssuer, and one without a name.
    @Test func pointsForSomeReasonsAndOfOtherIssuersAreIgnored() throws {
        let uri = "8611" + "http://c.example/".utf8.map { String($0, radix: 16) }.joined()
        let name = "a015a013" + uri
        let reasons = "301b" + name + "8102" + "0640"
        let issuer = "3023" + name + "a20a" + "8608" + "http://x".utf8.map { String($0, radix: 16) }.joined()
        let none = "3000"
        let body = reasons + issuer + none
        let sequence = "30" + String(body.count / 2, radix: 16) + body
        #expect(try points(["crlDistributionPoints=DER:\(sequence)"]).isEmpty)
        let plain = "3017" + name
        #expect(try points(["crlDistributionPoints=DER:3019\(plain)"]) == [.list(url: "http://c.example/")])
    }

    @Test(arguments: ["3000", "04020000", "3005a003a001", "ff", "30820000"])
    func malformedExtensionsNameNothing(der: String) throws {
        #expect(try points(["1.3.6.1.5.5.7.1.1=DER:\(der)"]).isEmpty)
        #expect(try points(["2.5.29.31=DER:\(der)"]).isEmpty)
    }

    @Test func theRequestIsThatOfOpenSSL() throws {
        try authority.make("leaf", of: "root", OpenSSLAuthority.server)
        let leaf = try #require(try Certificate.readPEM(authority.bytes("leaf.pem")).first)
        let root = try #require(try Certificate.readPEM(authority.bytes("root.pem")).first)
        let expected = try authority.makeRequest("request.der", about: "leaf", of: "root")
        #expect(try OCSPRequest.make(for: leaf, issuedBy: root) == expected)
    }
}
