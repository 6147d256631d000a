// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// Sign-ins of programs whose client has a key (RFC 7523), or whose tokens have one (RFC 9449).
@Suite(.waiting) struct LibraryClientKeyTests {
    /// A program may set a secret for all its sign-ins; this client has none.
    @Test func aSecretOfTheProgramDoesNotReplaceTheClientsKey() async throws {
        let home = try EnrollmentHome(["certificate": Tool.fixture("client-a.pem")])
        let manager = try HomeManager(home: URL(filePath: home.path))
        try await manager.importIdentity(
            certificates: Data(TextFile.bytes(Tool.fixture("client-a.pem"))),
            key: .file(Data(TextFile.bytes(Tool.fixture("client-a.key.pem")))), name: "client-key")
        let enrollment = try home.enrollment([
            "token_endpoint_auth_method": "private_key_jwt", "client_identity": "client-key",
        ])
        enrollment.clientSecret = Password("canary-client-secret")
        _ = try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        let clients = home.provider.clients
        #expect(!clients.isEmpty && clients.allSatisfy { $0 == "RS256" || $0 == "ES256" }, "\(clients)")
        #expect(try home.vault.signIns["work"]?.clientSecret == nil)
    }

    /// A program must not be able to send it as a bearer token by mistake.
    @Test func aBoundTokenHasNoText() async throws {
        let home = try EnrollmentHome(["dpop": [:] as [String: String]])
        try await home.signIn(["dpop": true])
        let controller = try ChallengeController(home: URL(filePath: home.path))
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: .git(.bearer)))
        guard case .token(let token)? = credential else {
            Issue.record("\(credential.debugDescription)")
            return
        }
        #expect(token.text == "" && "\(token)" == "(secret)")
        let stored = try #require(try home.vault.tokens["work"])
        #expect(stored.bound != nil && token == BearerToken(stored) && token != BearerToken(stored.token))
    }
}
