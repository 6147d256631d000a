// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// HTTP Basic and Digest (RFC 7030 §3.2.3): one answer per call, to one challenge, on a verified connection.
@Suite(.serialized) struct CredentialTests {
    @Test(arguments: [
        ("basic", "Basic"), ("digest", "Digest"), ("digest-sha256", "Digest"), ("both", "Digest"),
    ])
    func theServersChallengeChoosesTheScheme(auth: String, scheme: String) async throws {
        let scene = try Scene(#"{"auth": "\#(auth)"}"#)
        _ = try await scene.identity(from: try scene.client(password: ESTServer.password))
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == ["", scheme])
        #expect(scene.server.requests("simpleenroll").last?.user == ESTServer.user)
        #expect(scene.server.requests("cacerts").map(\.authorization) == [""])
    }

    @Test(arguments: [
        ("basic", false, "Basic"), ("digest", false, "Digest"), ("both", false, "Digest"), ("digest", true, "Digest"),
    ])
    func aRejectedCredentialIsSentOnce(auth: String, stale: Bool, scheme: String) async throws {
        let scene = try Scene(#"{"auth": "\#(auth)", "staleNonces": \#(stale)}"#)
        let error = try await scene.failure(of: try scene.client(password: "kanarie-wrong-1e"))
        #expect(error == EnrollmentError(.unauthorized, ""))
        #expect(error?.detail == "the server rejected credential \"est\"")
        #expect(error?.statusCode == 401)
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == ["", scheme])
    }

    @Test func aServerThatKeepsChallengingGetsOneAnswer() async throws {
        let scene = try Scene(#"{"fault": "401-forever", "faultFor": "simpleenroll", "auth": "both"}"#)
        let error = try await scene.failure(of: try scene.client(password: ESTServer.password))
        #expect(error?.code == .unauthorized)
        #expect(scene.server.requests("simpleenroll").count == 2)
    }

    @Test func withoutACredentialNothingIsAnswered() async throws {
        let scene = try Scene(#"{"auth": "both"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .unauthorized)
        #expect(error?.detail == "the server requires a user name and password (Basic, Digest), and none was given")
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == [""])
    }

    @Test func anUnsupportedSchemeIsNamed() async throws {
        let scene = try Scene(#"{"auth": "negotiate"}"#)
        let error = try await scene.failure(of: try scene.client(password: ESTServer.password))
        #expect(error?.code == .unauthorized)
        #expect(error?.detail.contains("offers Negotiate") == true)
        #expect(scene.server.requests("simpleenroll").map(\.authorization) == [""])
    }

    @Test func aCredentialNeverReachesAServerThatIsNotVerified() async throws {
        let scene = try Scene(#"{"server": "server-other", "auth": "basic", "authFor": ["cacerts"]}"#)
        let error = try await scene.failure(of: try scene.client(password: ESTServer.password))
        #expect(error?.code == .untrustedServer)
        #expect(scene.server.log.compactMap(\.method).isEmpty)
    }

    @Test func challengesOfUnverifiedServersAreNotAnswered() async throws {
        let scene = try Scene(#"{"auth": "basic", "authFor": ["cacerts"]}"#)
        let tls = ServerTLS(host: "127.0.0.1", verifier: nil, identity: nil, now: scene.clock)
        let access = try scene.access(password: ESTServer.password)
        let session = try CurlSession(tls: tls, access: access, limit: .seconds(30), now: scene.clock)
        #expect(throws: EnrollmentError(.unauthorized, "")) {
            try session.call(try scene.endpoint.url(for: .cacerts), unless: Cancellation())
        }
        #expect(scene.server.requests("cacerts").map(\.authorization) == [""])
    }

    @Test func errorsNeverContainThePassword() async throws {
        let password = "kanarie-wrong-1e"
        for control in [#"{"auth": "basic"}"#, #"{"auth": "digest"}"#, #"{"fault": "500"}"#, #"{"fault": "reset"}"#] {
            let scene = try Scene(control)
            let error = try #require(try await scene.failure(of: try scene.client(password: password)))
            let text = error.detail + (error.hint ?? "")
            for form in [password, Base64.encode(Array("\(ESTServer.user):\(password)".utf8))] {
                #expect(!text.contains(form))
            }
        }
    }

    @Test(arguments: ["", "a:b", "a\0b"])
    func aUserNameThatBasicCannotCarryIsRefused(user: String) throws {
        let scene = try Scene()
        var access = try scene.access()
        access.credential = PasswordCredential(name: "est", user: user, password: Secret(utf8: "x"), generation: 1)
        #expect(throws: EnrollmentError(.configuration, "")) {
            try ESTClient(endpoint: scene.endpoint, access: access, now: scene.clock)
        }
    }
}
