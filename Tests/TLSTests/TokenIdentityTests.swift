// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import CountersignCryptography
import NIOCore
import CountersignTestOrigin
import Testing

@testable import CountersignTLS

/// Tests keys in a token of softhsm2 with `openssl s_server`.
@Suite(.serialized)
struct TokenIdentityTests {
    private func identity(_ name: String) throws -> Identity {
        _ = try SoftToken.shared.get()
        let key = try PKCS11Token.key(at: TokenURI(SoftToken.uri(name)), pin: Secret(utf8: SoftToken.pin))
        #expect(key.isInToken)
        return try Identity(name: name, chain: Fixture.chain(name), key: key)
    }

    @Test(arguments: Fixture.bothVersions, [("client-a", "client-a-root"), ("client-b", "client-b-root")])
    func tokenMakesTheSignature(version: Int32, who: (name: String, root: String)) throws {
        let server = try OpenSSLServer([
            "-Verify", "3", "-verify_return_error", "-CAfile", Fixture.path(who.root),
            version == TLS1_3_VERSION ? "-tls1_3" : "-tls1_2", "-rev",
        ])
        let identity = try identity(who.name)
        let client = try LoopbackClient(port: server.port, context: Fixture.client(), answer: .now(identity))
        client.write("abc\n")
        #expect(client.reads("cba"), "\(server.said)")
        #expect(client.hears(.completed(identity: who.name)))
    }

    @Test(arguments: Fixture.bothVersions, ["client-a", "client-b"])
    func successiveHandshakesUseTheSameToken(version: Int32, name: String) throws {
        let server = try Fixture.server(authorities: ["client-a-root", "client-b-root"], isRequired: true)
        let identity = try identity(name)
        for _ in 0..<10 {
            let pair = try EnginePair(client: Fixture.client(version: version), server: server)
            pair.run()
            pair.client.engine.answerCertificateRequest(with: identity)
            pair.run()
            #expect(pair.client.engine.summary?.clientIdentity == name)
            #expect(pair.server.engine.summary?.peerCertificate == identity.leaf)
        }
    }
}
