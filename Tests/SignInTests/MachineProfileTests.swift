// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignSignIn

/// Profiles of machines that sign with a key of their own, and their keys. The openssl command makes the keys and
/// verifies what is signed with them.
@Suite struct MachineProfileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("machine") }

    private func openssl(_ arguments: [String]) throws -> CommandResult {
        try Command.run(Tool.path("openssl"), arguments, in: folder)
    }

    /// The path of a new private key in PEM.
    private func key(_ more: [String] = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]) throws -> String {
        let path = folder.file("key.pem")
        let made = try openssl(["genpkey", "-quiet"] + more + ["-out", path])
        #expect(made.status == 0, "\(made.said)")
        return path
    }

    private func secret(_ path: String) -> Secret { Secret(TextFile.bytes(path)) }

    private func serviceAccount(_ pem: String, _ changes: [String: String] = [:]) throws -> [UInt8] {
        let members = [
            "type": "service_account", "project_id": "p", "private_key_id": "abc123", "private_key": pem,
            "client_email": "robot@p.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
        ]
        return [UInt8](try JSONSerialization.data(withJSONObject: members.merging(changes) { $1 }))
    }

    /// Signs with the profile's key, as a renewal does, and returns whether openssl accepts it.
    private func verifies(_ profile: SignInProfile, with path: String) throws -> Bool {
        let endpoint = try #require(profile.metadata?.tokenEndpoint)
        let assertion = try #require(profile.grant?.assertion(of: profile.request, for: endpoint))
        guard case .grantKey(let key) = profile.request.client.authentication else { return false }
        let made = try assertion.signed(at: 1_900_000_000) { GrantKey.signature(of: $0, with: key) }
        let parts = made.split(separator: ".")
        let message = try folder.write("message", "\(parts[0]).\(parts[1])")
        let signature = try folder.write("signature", #require(Base64URL.decode(parts[2])))
        _ = try openssl(["pkey", "-in", path, "-pubout", "-out", folder.file("public.pem")])
        return try openssl(
            ["dgst", "-sha256", "-verify", folder.file("public.pem"), "-signature", signature, message]
        ).status == 0
    }

    @Test func aServiceAccountNeedsItsFileAlone() throws {
        let path = try key()
        let document = try serviceAccount(TextFile.text(path))
        let text = NamedMachine.gcp(try ServiceAccountKey(document), subject: nil)
        #expect(!text.contains("PRIVATE KEY"))
        let profile = try SignInProfile(Array(text.utf8))
        #expect(profile.name == "gcp" && profile.issuer.text == "https://oauth2.googleapis.com")
        #expect(profile.grant == .signedAssertion(.init(keyIdentifier: "abc123")))
        #expect(profile.request.client.identifier == "robot@p.iam.gserviceaccount.com")
        #expect(profile.request.scopes == ["https://www.googleapis.com/auth/cloud-platform"])
        #expect(try verifies(profile.authenticated(with: Secret(document)), with: path))
    }

    @Test func anAppIsSignedInWithThePEMThatGitHubGives() throws {
        let path = try key()
        // GitHub's files have the older form, PKCS #1.
        let older = folder.file("app.pem")
        #expect(try openssl(["rsa", "-in", path, "-traditional", "-out", older]).status == 0)
        #expect(TextFile.text(older).hasPrefix("-----BEGIN RSA PRIVATE KEY-----"))
        let text = try NamedMachine.githubApp(
            client: "Iv23abc", installation: "42", api: "https://ghe.example/api/v3/", repositories: ["a"],
            permissions: ["contents=read"])
        let profile = try SignInProfile(Array(text.utf8))
        #expect(
            profile.metadata?.tokenEndpoint.description
                == "https://ghe.example/api/v3/app/installations/42/access_tokens")
        #expect(
            profile.grant == .installation(.init(repositories: ["a"], permissions: [.init("contents", "read")])))
        #expect(profile.name == "github-app" && profile.request.client.identifier == "Iv23abc")
        let signing = try profile.authenticated(with: secret(older))
        #expect(try verifies(signing, with: path))
        // The vault has the same key in another form.
        let stored = try #require(signing.request.client.authentication.secret)
        #expect(try profile.authenticated(with: stored).request.client.authentication.secret == stored)
    }

    @Test func anotherKeyIsRefused() throws {
        let ec = try key(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
        #expect(fault { _ = try GrantKey.pkcs8(secret(ec)) }?.detail.contains("expects RSA") == true)
        let encrypted = folder.file("encrypted.pem")
        _ = try openssl(["pkey", "-in", try key(), "-aes256", "-passout", "pass:x", "-out", encrypted])
        #expect(fault { _ = try GrantKey.pkcs8(secret(encrypted)) }?.hint?.contains("openssl pkey") == true)
        #expect(fault { _ = try GrantKey.pkcs8(Secret(utf8: "kanarie-secret")) }?.detail.contains("kanarie") == false)
    }

    @Test(
        arguments: [
            (["type": "authorized_user"], "\"type\" is not"), (["private_key": "kanarie"], "cannot be used"),
        ])
    func anotherFileIsRefused(changes: [String: String], words: String) throws {
        let document = try serviceAccount("kanarie", changes)
        let fault = try #require(fault { _ = try GrantKey.pkcs8(Secret(document)) })
        #expect(fault.code == .configuration && fault.detail.contains(words), "\(fault)")
        #expect(!"\(fault)".contains("kanarie"))
    }

    private func fault(_ body: () throws -> Void) -> OAuthError? {
        do {
            try body()
            return nil
        } catch {
            return error as? OAuthError
        }
    }

    // MARK: Profiles

    private static let signed = #"""
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "token_endpoint": "https://id.example/t"
        """#
    private static let app = #"""
        "grant_type": "github_app_installation", "client_id": "1",
        "token_endpoint": "https://api.example/app/installations/42/access_tokens"
        """#

    @Test func theKeysOfAnAssertionAreRead() throws {
        let profile = try SignInProfile(
            Array(
                """
                {\(Self.signed), "assertion_issuer": "me", "assertion_subject": "jo", "assertion_key_id": "k",
                "audience": "https://login.example"}
                """.utf8))
        #expect(
            profile.grant
                == .signedAssertion(.init(subject: "jo", keyIdentifier: "k", audience: "https://login.example")))
        #expect(profile.clientAuthentication == .grantKey && profile.request.client.identifier == "me")
    }

    @Test(
        arguments: [
            (signed, "\"assertion_file\" is missing"),
            ("\(signed), \"assertion_key_id\": \"k\"", "add \"assertion_issuer\""),
            ("\(signed), \"assertion_issuer\": \"a\", \"assertion_file\": \"/x\"", "has no effect"),
            ("\(signed), \"assertion_issuer\": \"a\", \"client_id\": \"x\"", "has no effect"),
            (
                "\(signed), \"assertion_issuer\": \"a\", \"token_endpoint_auth_method\": \"client_secret\"",
                "signs what it sends"
            ),
            (
                #""issuer": "https://id.example", "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "#
                    + #""assertion_issuer": "a""#, "\"token_endpoint\" is missing"
            ),
            ("\(app), \"scopes\": [\"a\"]", "is not for GitHub Apps"),
            ("\(app), \"dpop\": true", "is not for GitHub Apps"),
            ("\(app), \"repositories\": [\"owner/name\"]", "without their owner"),
            ("\(app), \"permissions\": [\"contents\"]", "must be an object"),
            ("\(app), \"permissions\": {\"contents\": \"all\"}", "\"read\", \"write\" or \"admin\""),
            ("\(app), \"assertion_issuer\": \"a\"", "is for \"grant_type\""),
            (app.replacingOccurrences(of: "42", with: "x"), "/app/installations/NUMBER/access_tokens"),
            (app.replacingOccurrences(of: "app/installations", with: "installations"), "access_tokens"),
            (
                app.replacingOccurrences(of: "\"client_id\": \"1\",", with: ""), "\"client_id\" is missing"
            ),
            (
                #""issuer": "https://id.example", "client_id": "c", "token_endpoint_auth_method": "grant_key""#,
                "must be one of"
            ),
        ])
    func aFaultOfAProfileIsNamed(members: String, words: String) {
        do {
            _ = try SignInProfile(Array("{\(members)}".utf8))
            Issue.record("accepted: \(members)")
        } catch {
            #expect("\(error)".contains(words), "\(error)")
        }
    }

    @Test func anAppHasNoScopes() throws {
        let profile = try SignInProfile(Array("{\(Self.app)}".utf8))
        #expect(profile.request.scopes.isEmpty)
        #expect(throws: OAuthError.self) { try profile.adding(scopes: ["repo"]) }
    }

    @Test(
        arguments: [
            ("http://ghe.example/api/v3", []), ("ghe.example", []), ("https://ghe.example/?a", []),
            ("https://api.github.com", ["contents"]), ("https://api.github.com", ["a=read", "a=write"]),
        ] as [(String, [String])])
    func anOptionThatCannotBeUsedIsRefused(api: String, permissions: [String]) {
        #expect(throws: SignInError.self) {
            try NamedMachine.githubApp(
                client: "1", installation: "42", api: api, repositories: [], permissions: permissions)
        }
    }
}
