// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// Proof of possession that is linked to the TLS connection (RFC 7030 §3.5), verified by Python's OpenSSL on the
/// server.
@Suite(.serialized) struct LinkingTests {
    /// CsrAttrs with challengePassword only.
    private static let demand = #""linking": true, "csrattrs": "MAsGCSqGSIb3DQEJBw==""#

    @Test(
        arguments: ["1.2", "1.3"], [KeySpecification.ecP256, .ecP384, .rsa2048])
    func aLinkedRequestIsMadeForTheConnectionThatCarriesIt(version: String, key: KeySpecification) async throws {
        let scene = try Scene(#"{"tls": "\#(version)", \#(Self.demand)}"#)
        _ = try await scene.identity(from: try scene.client(), key: key)
        let request = try #require(scene.server.requests("simpleenroll").last)
        #expect(request.linked == true)
        #expect(request.tls == "TLSv\(version)")
        let said = try scene.openssl(
            "req", "-inform", "DER", "-in", scene.server.folder.file("last.csr"), "-verify", "-noout", "-text")
        #expect(said.status == 0, "\(said.said)")
        #expect(said.output.contains("challengePassword"))
    }

    @Test(arguments: ["1.2", "1.3"])
    func theLinkFollowsToANewConnection(version: String) async throws {
        let scene = try Scene(#"{"tls": "\#(version)", "close": true, "auth": "digest", \#(Self.demand)}"#)
        _ = try await scene.identity(from: try scene.client(password: ESTServer.password))
        let requests = scene.server.requests("simpleenroll")
        #expect(requests.last?.linked == true)
        #expect(Set(requests.map(\.connection)).count == requests.count)
    }

    @Test func theVersionOfTLSMayChangeBetweenCalls() async throws {
        let scene = try Scene(#"{"tls": "1.2", "close": true, \#(Self.demand)}"#)
        let client = try scene.client()
        let authorities = try await client.certificationAuthorities()
        let attributes = try await client.requestAttributes()
        for version in ["1.3", "1.2", "1.3"] {
            try scene.server.set(#"{"tls": "\#(version)", "close": true, \#(Self.demand)}"#)
            let outcome = try await client.enroll(
                .enroll, try scene.request(key: try .generate(.ecP256), attributes: attributes),
                authorities: authorities)
            guard case .issued = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(scene.server.requests("simpleenroll").last?.tls == "TLSv\(version)")
        }
        #expect(scene.server.requests("simpleenroll").allSatisfy { $0.linked == true })
    }

    @Test func manyLinkedRequestsFitTheirLength() async throws {
        let scene = try Scene("{\(Self.demand)}")
        let client = try scene.client()
        for _ in 0..<20 { _ = try await scene.identity(from: client) }
        #expect(scene.server.requests("simpleenroll").map(\.linked) == Array(repeating: true, count: 20))
    }

    @Test func withoutTheAttributeThereIsNoChallengePassword() async throws {
        let scene = try Scene(#"{"linking": true}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .refused)
        #expect(error?.detail.contains("the request is not linked to this connection") == true)
        #expect(scene.server.requests("simpleenroll").map(\.linked) == [nil])
    }

    @Test func aRenewalIsLinkedToo() async throws {
        let scene = try Scene(#"{"clientCertificate": "optional", \#(Self.demand)}"#)
        let first = try await scene.identity(from: try scene.client())
        _ = try await scene.identity(from: try scene.client(identity: first), .reenroll)
        #expect(scene.server.requests("simplereenroll").map(\.linked) == [true])
    }
}
