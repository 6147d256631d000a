// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `enroll --key`: machines that sign with a key of their own.
@Suite(.waiting) struct MachineKeyTests {
    private func bench(_ profile: String) throws -> SignInSandbox {
        let bench = try SignInSandbox()
        _ = try bench.sandbox.folder.write("profile.json", profile)
        return bench
    }

    @Test func theKeyIsReadOnceAndServeRepeatsTheGrant() throws {
        // So that the renewal is in time on a busy machine.
        let provider = try MachineProvider(lifetime: 40)
        let bench = try bench(provider.app())
        let key = try bench.sandbox.folder.write("app.pem", TextFile.text(provider.key))
        let missing = try bench.enroll()
        #expect(missing.status == 1 && missing.error.contains("give its file with --key"), "\(missing.said)")
        let result = try bench.enroll("--key", key)
        #expect(result.status == 0 && result.output.contains("signed in as app-1"), "\(result.said)")
        #expect(result.error.contains("with its private key, which stays in the vault"), "\(result.said)")
        #expect(!result.said.contains("ghs_") && !result.said.contains("PRIVATE KEY"))
        try FileManager.default.removeItem(atPath: key)
        #expect(try bench.status[0]["scope"] as? String == "contents:write issues:read")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"],
            environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path,
            capture: bench.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        let path = "/app/installations/42/access_tokens 201"
        let grants: Bool? = poll { provider.requests.filter { $0 == path }.count >= 3 ? true : nil }
        #expect(grants == true, "\(provider.requests)")
        // The stored key serves a new sign-in, too.
        let again = try bench.enroll()
        #expect(again.status == 0, "\(again.said)")
    }

    @Test func theStoredKeyIsForItsClientAndEndpointAlone() throws {
        let provider = try MachineProvider()
        let bench = try bench(provider.app())
        #expect(try bench.enroll("--key", provider.key).status == 0)
        for other in [provider.app(client: "app-2"), provider.app(installation: 43)] {
            _ = try bench.sandbox.folder.write("profile.json", other)
            let result = try bench.enroll()
            #expect(result.status == 1 && result.error.contains("is not stored"), "\(result.said)")
        }
        #expect(provider.requests.count == 1)
    }

    @Test func aServiceAccountIsBuiltIn() throws {
        let provider = try MachineProvider()
        let bench = try SignInSandbox()
        let file: [String: String] = [
            "type": "service_account", "client_email": "robot", "private_key_id": "key-1",
            "private_key": TextFile.text(provider.key), "token_uri": "\(provider.origin)/token",
        ]
        let data = try JSONSerialization.data(withJSONObject: file, options: .withoutEscapingSlashes)
        let key = try bench.sandbox.folder.write("key.json", String(decoding: data, as: UTF8.self))
        // The provider of the tests knows another scope.
        let result = try bench.run(["enroll", "gcp", "--key", key, "--yes"])
        #expect(result.status == 1 && result.error.contains("account not found"), "\(result.said)")
        #expect(provider.requests == ["/token 400 account not found"])
    }

    @Test(
        arguments: [
            (["gcp"], "needs the JSON file"), (["gcp", "--key", "profile.json"], "cannot be used"),
            (["gcp", "--client-id", "x"], "--client-id is for the profile github-app"),
            (["github-app", "--client-id", "x"], "and --installation"),
            (["github-app", "--client-id", "x", "--installation", "y"], "/app/installations/NUMBER/access_tokens"),
            (["github", "--client-id", "x", "--installation", "1"], "is for the profile github-app"),
            (["github", "--client-id", "x", "--key", "profile.json"], "--key is for machines"),
            (["github-app", "--subject", "jo"], "--subject is for the profile gcp"),
        ])
    func aWrongOptionIsNamed(arguments: [String], words: String) throws {
        let result = try SignInSandbox().run(["enroll"] + arguments + ["--yes"])
        #expect(result.status == 1 && result.error.contains(words), "\(result.said)")
    }
}
