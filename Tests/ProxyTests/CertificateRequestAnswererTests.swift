// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignDemo
import CountersignTLS
import Testing

@testable import CountersignProxy
@testable import CountersignUpstream

@Suite struct CertificateRequestAnswererTests {
    private static let origin = Origin(scheme: .https, host: "a.example", port: 443)
    /// ecdsa_secp256r1_sha256.
    private static let request = CertificateRequest(
        acceptableIssuers: [], signatureAlgorithms: [0x0403], isPostHandshake: false)

    /// The names of the identities shown to an origin that requests a certificate.
    private static func shown(_ bench: Bench, to session: ClientSession) throws -> [String?] {
        let rule = try #require(bench.services.shared.policy.current.sites.rule(for: origin))
        let source = CertificateRequestAnswerer.source(
            for: rule, at: origin, services: bench.services, client: session)
        var names: [String?] = []
        source(request, OriginConnection(place: "a.example:443", tlsHandler: nil)) { names.append($0?.name) }
        return names
    }

    @Test func noCertificateIsShownForAClientThatHasGone() throws {
        let identity = try ClientCA(commonName: "clients", at: 1_799_999_000)
            .issue("me", commonName: "me", lifetime: 86_400, at: 1_799_999_000)
        let bench = try Bench(sites: "https://a.example answer=certificate identity=me", identities: [identity])
        #expect(try Self.shown(bench, to: bench.connection.session) == ["me"])
        #expect(try Self.shown(bench, to: ClientSession(process: ClientProcess(), addresses: nil)) == [nil])
        bench.connection.clientGone()
        #expect(try Self.shown(bench, to: bench.connection.session) == [nil])
    }
}
