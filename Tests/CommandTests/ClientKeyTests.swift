// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Clients that prove who they are with the key of an enrolled identity (`private_key_jwt`). The provider verifies the
/// signatures with Python's `cryptography`, and accepts no assertion twice.
@Suite(.waiting) struct ClientKeyTests {
    /// Makes a certificate and its key with openssl, imports them as `name`, and returns the certificate's file.
    private func identity(_ name: String, _ generation: [String], _ sandbox: Sandbox) throws -> String {
        let (certificate, key) = (sandbox.folder.file("\(name).crt"), sandbox.folder.file("\(name).key"))
        let made = try Command.run(
            Tool.path("openssl"),
            ["req", "-x509", "-nodes", "-newkey"] + generation + [
                "-subj", "/CN=client", "-days", "2", "-keyout", key, "-out", certificate,
            ], in: sandbox.folder)
        guard made.status == 0 else { throw HarnessError(made.said) }
        let both =
            try String(contentsOfFile: certificate, encoding: .utf8) + String(contentsOfFile: key, encoding: .utf8)
        let file = try sandbox.folder.write("\(name).pem", both)
        try sandbox.succeed("certificate", "import", file, "--name", name)
        return certificate
    }

    private func bench(_ generation: [String], _ more: [String: any Sendable] = [:]) throws -> SignInSandbox {
        let bench = try SignInSandbox(
            profile: [
                "name": "work", "token_endpoint_auth_method": "private_key_jwt", "client_identity": "client-key",
            ])
        let certificate = try identity("client-key", generation, bench.sandbox)
        try bench.provider.change(["certificate": certificate].merging(more) { $1 })
        return bench
    }

    private static let rsa = ["rsa:2048"]

    /// All requests of the client have an assertion: tokens, the new sign-in and the end.
    @Test(
        arguments: [
            (Self.rsa, nil, "RS256"), (Self.rsa, ["PS256", "ES256"], "PS256"),
            (["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], nil, "ES256"),
            (["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], ["RS256", "ES384"], "ES384"),
        ] as [([String], [String]?, String)])
    func theProviderAcceptsTheKey(generation: [String], supported: [String]?, algorithm: String) throws {
        let bench = try bench(generation, supported.map { ["algorithms": $0] } ?? [:])
        let result = try bench.enroll()
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        #expect(result.error.contains("with the key of your identity client-key"), "\(result.said)")
        let again = try bench.run(["enroll", "work", "--yes"])
        #expect(again.status == 0, "\(again.said)")
        let ended = try bench.run(["unenroll", "work"])
        #expect(ended.status == 0 && !ended.said.contains("warning"), "\(ended.said)")
        #expect(bench.provider.clients == Array(repeating: algorithm, count: 4), "\(bench.provider.requests)")
    }

    /// RFC 9126 §2 and RFC 8628 §3.1: the client authenticates there, too.
    @Test(arguments: [("system", "/push"), ("device", "/device")])
    func theOtherEndpointsGetAnAssertion(agent: String, path: String) throws {
        let bench = try bench(Self.rsa, agent == "system" ? ["push": true] : [:])
        let result = try bench.enroll("--user-agent", agent)
        #expect(result.status == 0, "\(result.said)")
        #expect(bench.provider.requests.contains { $0.contains("POST \(path)") && $0.contains(" 20") })
        #expect(Set(bench.provider.clients) == ["RS256"] && bench.provider.clients.count >= 2)
    }

    @Test func serveRenewsWithTheKey() throws {
        let bench = try bench(Self.rsa, ["lifetime": 40])
        #expect(try bench.enroll().status == 0)
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"],
            environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path,
            capture: bench.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        let isRenewed: Bool? = poll {
            bench.provider.requests.contains("POST /token refresh_token 200") ? true : nil
        }
        #expect(isRenewed == true, "\(bench.provider.requests)")
        #expect(Set(bench.provider.clients) == ["RS256"])
    }

    /// A sign-in whose identity is gone still ends, and says that its tokens are not revoked.
    @Test func withoutTheIdentityNothingIsSent() throws {
        let bench = try bench(Self.rsa)
        #expect(try bench.enroll().status == 0)
        let before = bench.provider.requests.count
        try bench.sandbox.succeed("certificate", "remove", "client-key")
        let result = try bench.run(["enroll", "work", "--yes"])
        #expect(result.status == 1 && result.error.contains("the identity \"client-key\""), "\(result.said)")
        #expect(result.error.contains("countersign certificate import FILE --name client-key"), "\(result.said)")
        let ended = try bench.run(["unenroll", "work"])
        #expect(ended.status == 0 && ended.error.contains("has not revoked the tokens"), "\(ended.said)")
        #expect(bench.provider.requests.count == before, "\(bench.provider.requests)")
    }

    @Test func faultsOfProfilesSayWhere() throws {
        let bench = try SignInSandbox()
        for (profile, words) in [
            (["token_endpoint_auth_method": "private_key_jwt"], "\"client_identity\" is missing"),
            (["client_identity": "a"], "is for \"token_endpoint_auth_method\": \"private_key_jwt\""),
            (["client_key_id": "a"], "is for \"token_endpoint_auth_method\": \"private_key_jwt\""),
            (
                ["token_endpoint_auth_method": "private_key_jwt", "client_identity": "a", "client_key_id": ""],
                "is empty"
            ),
        ] as [([String: String], String)] {
            let usual: [String: any Sendable] = ["client_id": "c", "issuer": "https://id.example"]
            let text = try JSONSerialization.data(withJSONObject: usual.merging(profile) { $1 })
            _ = try bench.sandbox.folder.write("profile.json", String(decoding: text, as: UTF8.self))
            let result = try bench.enroll()
            #expect(result.status == 1 && result.error.contains(words), "\(profile): \(result.said)")
            #expect(result.error.contains("line 1, column"), "\(result.said)")
        }
    }
}
