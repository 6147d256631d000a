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

    /// The names of the identities shown to an origin that requests a certificate, and the connection to it.
    private static func shown(
        _ bench: Bench, to session: ClientSession
    ) throws -> (names: [String?], connection: OriginConnection) {
        let rule = try #require(bench.services.shared.policy.current.sites.rule(for: origin))
        let source = CertificateRequestAnswerer.source(
            for: rule, at: origin, services: bench.services, client: session)
        var names: [String?] = []
        let connection = OriginConnection(place: "a.example:443", tlsHandler: nil)
        source(request, connection) { names.append($0?.name) }
        return (names, connection)
    }

    @Test func noCertificateIsShownForAClientThatHasGone() throws {
        let identity = try ClientCA(commonName: "clients", at: 1_799_999_000)
            .issue("me", commonName: "me", lifetime: 86_400, at: 1_799_999_000)
        let bench = try Bench(sites: "https://a.example answer=certificate identity=me", identities: [identity])
        let mine = try Self.shown(bench, to: bench.connection.session)
        #expect(mine.names == ["me"] && !mine.connection.lacksIdentity)
        bench.connection.clientGone()
        // Other clients would get no certificate on these connections either.
        for session in [ClientSession(process: ClientProcess(), addresses: nil), bench.connection.session] {
            let other = try Self.shown(bench, to: session)
            #expect(other.names == [nil] && other.connection.lacksIdentity)
        }
    }
}
