// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// An access token answers an EST server's Bearer challenge: once per call, on a verified connection.
@Suite(.serialized) struct TokenTests {
    private static let token = "canary-access-1f"

    private static func client(
        _ scene: Scene, token: String = token, password: String? = nil, anchors: [String] = ["ca"]
    ) throws -> ESTClient {
        var access = try scene.access(anchors: anchors, password: password)
        access.token = TokenCredential(name: "work", token: Secret(utf8: token), generation: 1)
        return try ESTClient(endpoint: try scene.endpoint, access: access, now: scene.clock)
    }

    @Test func aBearerChallengeIsAnsweredOnce() async throws {
        let scene = try Scene(#"{"auth": "bearer"}"#)
        _ = try await scene.identity(from: try Self.client(scene))
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == ["", "Bearer"])
        #expect(scene.server.requests("simpleenroll").last?.user == "token")
        #expect(scene.server.requests("cacerts").map(\.authorization) == [""])
    }

    @Test func aRejectedTokenIsSentOnce() async throws {
        let scene = try Scene(#"{"auth": "bearer", "tokens": "other"}"#)
        let error = try await scene.failure(of: try Self.client(scene))
        #expect(error?.code == .unauthorized && error?.rejects == .token)
        #expect(error?.detail == "the server rejected the access token \"work\"")
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == ["", "Bearer"])
    }

    /// The challenge decides which of the two is sent.
    @Test(arguments: [("bearer-basic", "Bearer"), ("basic", "Basic"), ("digest", "Digest")])
    func aPasswordAnswersWhereTheTokenDoesNot(auth: String, scheme: String) async throws {
        let scene = try Scene(#"{"auth": "\#(auth)"}"#)
        _ = try await scene.identity(from: try Self.client(scene, password: ESTServer.password))
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == ["", scheme])
    }

    @Test func aRejectedPasswordIsNotTakenForTheToken() async throws {
        let scene = try Scene(#"{"auth": "basic"}"#)
        let error = try await scene.failure(of: try Self.client(scene, password: "kanarie-wrong-1e"))
        #expect(error?.rejects == .credential && error?.detail == "the server rejected credential \"est\"")
    }

    @Test(arguments: ["basic", "negotiate"])
    func noOtherChallengeGetsTheToken(auth: String) async throws {
        let scene = try Scene(#"{"auth": "\#(auth)"}"#)
        let error = try await scene.failure(of: try Self.client(scene))
        #expect(error?.code == .unauthorized && error?.rejects == nil)
        #expect(error?.detail.hasSuffix("and the access token \"work\" answers Bearer only") == true)
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == [""])
    }

    @Test func noTokenReachesAServerThatIsNotVerified() async throws {
        let scene = try Scene(#"{"server": "server-other", "auth": "bearer", "authFor": ["cacerts"]}"#)
        let error = try await scene.failure(of: try Self.client(scene))
        #expect(error?.code == .untrustedServer)
        #expect(scene.server.log.allSatisfy { $0.authorization == nil })
    }

    @Test(arguments: ["", "a b", "a\r\nX-Evil: 1"])
    func aTextThatIsNoTokenIsRefused(token: String) throws {
        let scene = try Scene()
        let error = #expect(throws: EnrollmentError.self) { try Self.client(scene, token: token) }
        #expect(error?.code == .configuration)
    }
}
