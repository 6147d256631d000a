// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// Which EST servers and CA certificates are trusted (RFC 7030 §3.6, §4.1).
@Suite(.serialized) struct ServerTrustTests {
    @Test(arguments: [
        ("server-other", "which is not trusted"), ("server-name", "certificate is for another host"),
        ("server-new", "which is not trusted"),
    ])
    func aServerOutsideTheAnchorsGetsNoRequest(server: String, reason: String) async throws {
        let scene = try Scene(#"{"server": "\#(server)"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .untrustedServer)
        #expect(error?.detail.contains(reason) == true, "\(error?.detail ?? "")")
        #expect(error?.detail.contains(try scene.certificate(server).fingerprintText) == true)
        #expect(error?.hint?.contains(try scene.certificate("ca").fingerprintText) == true)
        #expect(scene.server.log.compactMap(\.method).isEmpty)
    }

    @Test func anInterceptionCAIsNotAnAnchor() async throws {
        let scene = try Scene()
        var access = try scene.access()
        access.refused = access.anchors
        let client = try ESTClient(endpoint: scene.endpoint, access: access, now: scene.clock)
        await #expect(throws: EnrollmentError(.untrustedServer, "")) { try await client.certificationAuthorities() }
    }

    @Test func anAnchorHasToBeASelfSignedAuthority() throws {
        let scene = try Scene()
        for names in [[], ["sub-ca"], ["server"], ["new-by-old"]] {
            #expect(throws: EnrollmentError(.configuration, "")) { try scene.client(anchors: names) }
        }
    }

    @Test func anUnknownServersCertificatesAreReported() async throws {
        let scene = try Scene(#"{"cacerts": ["sub-ca", "ca"], "clientCertificate": "optional"}"#)
        let found = try await ESTBootstrap.fetch(scene.endpoint)
        #expect(found.certificationAuthorities == [try scene.certificate("ca")])
        #expect(found.serverChain.first == (try scene.certificate("server")))
        let said = try scene.openssl(
            "x509", "-in", scene.server.certificate("ca"), "-noout", "-fingerprint", "-sha256")
        let digits = said.output.split(separator: "=").last?.filter(\.isHexDigit) ?? ""
        let fingerprint = try #require(Hex.decode(digits.lowercased()))
        #expect(try found.certificationAuthority(withFingerprint: fingerprint) == scene.certificate("ca"))
        #expect(throws: EnrollmentError(.untrustedServer, "")) {
            try found.certificationAuthority(withFingerprint: scene.certificate("other-ca").sha256Fingerprint)
        }
        #expect(scene.server.log.compactMap(\.client).isEmpty)
    }

    @Test func aServerOfAnotherAuthorityThanTheConfirmedOneIsRefused() async throws {
        let scene = try Scene(#"{"server": "server-other"}"#)
        let found = try await ESTBootstrap.fetch(scene.endpoint)
        let anchor = try found.certificationAuthority(withFingerprint: try scene.certificate("ca").sha256Fingerprint)
        let client = try ESTClient(
            endpoint: scene.endpoint, access: ESTAuthentication(anchors: [anchor]), now: scene.clock)
        await #expect(throws: EnrollmentError(.untrustedServer, "")) { try await client.certificationAuthorities() }
    }

    @Test(arguments: ["html", "empty-pkcs7", "500", "302", "401-forever"])
    func aBootstrapWithoutCertificatesIsAnError(fault: String) async throws {
        let scene = try Scene(#"{"fault": "\#(fault)", "authFor": ["cacerts"]}"#)
        await #expect(throws: EnrollmentError.self) { try await ESTBootstrap.fetch(scene.endpoint) }
    }

    // MARK: Change of keys

    @Test func aNewAuthorityThatTheOldOneSignedBecomesAnAnchor() async throws {
        let scene = try Scene(#"{"cacerts": ["new-ca", "new-by-old", "old-by-new", "ca"]}"#)
        let authorities = try await scene.client().certificationAuthorities()
        #expect(authorities.newAnchors == [try scene.certificate("new-ca")])
        #expect(authorities.anchors == [try scene.certificate("ca"), try scene.certificate("new-ca")])
        #expect(authorities.unvouched.isEmpty)
        try scene.server.set(#"{"cacerts": ["new-ca", "new-by-old", "old-by-new", "ca"], "issuer": "new-ca"}"#)
        let identity = try await scene.identity(from: try scene.client())
        #expect(identity.leaf.issuer == "CN=EST CA,O=Test")
        try scene.server.set(#"{"cacerts": ["new-ca"], "issuer": "new-ca", "server": "server-new"}"#)
        _ = try await scene.identity(from: try scene.client(anchors: ["ca", "new-ca"]))
    }

    @Test(arguments: [
        #"["ca", "new-ca"]"#, #"["ca", "old-by-new", "new-ca"]"#, #"["ca", "other-ca", "new-by-old"]"#,
        #"["ca", "third-by-old", "new-ca"]"#,
    ])
    func aCACertificateThatNoAnchorVouchesForIsNotTrusted(sent: String) async throws {
        let scene = try Scene(#"{"cacerts": \#(sent)}"#)
        let authorities = try await scene.client().certificationAuthorities()
        #expect(authorities.newAnchors.isEmpty)
        #expect(authorities.unvouched.count == 1)
        #expect(authorities.anchors == [try scene.certificate("ca")])
    }

    @Test(arguments: [#"["other-ca"]"#, #"["new-ca", "old-by-new"]"#])
    func aReplacedCAIsAnError(sent: String) async throws {
        let scene = try Scene(#"{"cacerts": \#(sent)}"#)
        let client = try scene.client()
        do {
            _ = try await client.certificationAuthorities()
            Issue.record("the authorities were taken")
        } catch {
            #expect(error.code == .authorityChanged)
            #expect(error.detail.contains("sha256:"))
            #expect(error.hint != nil)
        }
    }

    @Test func aCertificateFromAnUnknownIssuerIsNotAccepted() async throws {
        let scene = try Scene(#"{"cacerts": ["ca", "other-ca"], "issuer": "other-ca"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .wrongCertificate)
        #expect(error?.detail.contains("by \"CN=Other CA,O=Test\"") == true, "\(error?.detail ?? "")")
        #expect(error?.hint != nil)
    }
}
