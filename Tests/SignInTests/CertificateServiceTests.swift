// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignSignIn

/// `"est"` in a profile.
@Suite struct CertificateServiceTests {
    private static let authority = Result { TextFile.text(try TestPKI.shared.originAnchor) }

    /// `sites` and `own` are JSON; `own` is that of `est` after the anchor.
    private static func profile(
        server: String = "https://est.corp.example/devices", anchor: String? = nil, sites: String = "[]",
        _ own: String = "", outside: String = ""
    ) throws -> SignInProfile {
        let pem = try JSONSerialization.data(
            withJSONObject: try anchor ?? authority.get(), options: [.fragmentsAllowed])
        let text = """
            {"issuer": "https://login.corp.example", "client_id": "c", "sites": \(sites)\(outside),
             "est": {"server": "\(server)", "anchor": \(String(decoding: pem, as: UTF8.self))\(own)}}
            """
        return try SignInProfile(Array(text.utf8))
    }

    private static func fault(of body: () throws -> SignInProfile) -> String {
        do {
            _ = try body()
            return ""
        } catch {
            return (error as? JSONError)?.detail ?? "\(error)"
        }
    }

    @Test func aServiceHasItsAnchorsAndSites() throws {
        let profile = try Self.profile(#", "key": "ec-p384", "sites": ["https://pay.corp.example"]"#)
        let service = try #require(profile.certificates)
        #expect(service.endpoint.description == "https://est.corp.example/devices" && service.key == .ecP384)
        #expect(service.anchors.count == 1 && service.sites == ["https://pay.corp.example"])
        #expect(
            profile.siteLines(name: "work") == ["https://pay.corp.example answer=certificate identity=work"])
    }

    @Test func aSiteThatGetsTokenAndCertificateHasOneLine() throws {
        let profile = try Self.profile(
            sites: #"["https://api.corp.example", "https://wiki.corp.example"]"#,
            #", "sites": ["API.corp.example", "pay.corp.example"]"#)
        #expect(
            profile.siteLines(name: "work") == [
                "https://api.corp.example answer=certificate,bearer credential=work identity=work",
                "https://wiki.corp.example answer=bearer credential=work",
                "pay.corp.example answer=certificate identity=work",
            ])
    }

    @Test(arguments: [
        "http://est.corp.example", "https://est.corp.example/a/b", "est.corp.example", "https://u@est.corp.example", "",
    ])
    func aServerIsHTTPSWithAtMostALabel(server: String) {
        let fault = Self.fault { try Self.profile(server: server) }
        #expect(fault.contains("\"server\" cannot be used"), "\(fault)")
    }

    @Test func anAnchorIsASelfSignedAuthority() throws {
        let leaf = TextFile.text(try TestPKI.shared.certificate("server"))
        #expect(Self.fault { try Self.profile(anchor: "") }.contains("must be certificates in PEM"))
        #expect(Self.fault { try Self.profile(anchor: leaf) }.contains("not a self-signed CA certificate"))
        let many = String(repeating: try Self.authority.get(), count: 9)
        #expect(Self.fault { try Self.profile(anchor: many) }.contains("more than 8 certificates"))
    }

    @Test(arguments: [
        #", "key": "ec-p999""#, #", "key": "token""#, #", "sites": ["a b"]"#, #", "sites": ["a#b"]"#,
        #", "credential": "enrollment""#, #", "sites": ["https://a.example answer=basic"]"#,
    ])
    func otherMembersAndValuesAreErrors(own: String) {
        #expect(!Self.fault { try Self.profile(own) }.isEmpty)
    }

    @Test func thereIsALimitOnSites() {
        let names = (0..<60).map { "\"a\($0).example\"" }.joined(separator: ", ")
        let more = (0..<5).map { "\"b\($0).example\"" }.joined(separator: ", ")
        #expect(Self.fault { try Self.profile(sites: "[\(names)]") }.isEmpty)
        #expect(
            Self.fault { try Self.profile(sites: "[\(names)]", #", "sites": [\#(more)]"#) }.contains("more than 64"))
        let many = (0..<17).map { "\"b\($0).example\"" }.joined(separator: ", ")
        #expect(Self.fault { try Self.profile(#", "sites": [\#(many)]"#) }.contains("more than 16"))
    }
}
