// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign token docker` and `countersign token kubectl`, as those programs call them.
@Suite(.waiting) struct TokenHelperTests {
    private func json(_ text: String) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
    }

    // MARK: docker

    private func signedIn(isPermitted: Bool = true) throws -> SignInSandbox {
        try TokenTests.signedIn(
            ["token": ["first"]], profile: ["sites": ["https://registry.corp.example"]], isPermitted: isPermitted)
    }

    @Test func dockerGetsTheTokenOfAListedRegistry() throws {
        let bench = try signedIn()
        let link = bench.file("docker-credential-countersign")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: try Sandbox.executable)
        for server in ["registry.corp.example", "https://registry.corp.example/v1/\n"] {
            let input = try bench.sandbox.folder.write("server", server)
            let result = try bench.sandbox.sh("./docker-credential-countersign get < '\(input)'")
            #expect(result.status == 0 && result.error.isEmpty, "\(result.said)")
            let found = try json(result.output)
            #expect(found["Username"] as? String == "<token>" && found["Secret"] as? String == "first")
            #expect(found["ServerURL"] as? String == server.trimmingCharacters(in: .newlines))
        }
        let listed = try bench.sandbox.sh("./docker-credential-countersign list")
        #expect(listed.output == "{\"https://registry.corp.example\":\"<token>\"}\n", "\(listed.said)")
        let named = try bench.sandbox.countersign(
            "token", "docker", "--user", "oauth2accesstoken", "get", input: "registry.corp.example")
        #expect(try json(named.output)["Username"] as? String == "oauth2accesstoken", "\(named.said)")
    }

    /// docker reads standard output, and knows these words.
    @Test func whatDockerDoesNotGetIsSaidInItsWords() throws {
        let bench = try signedIn()
        for (operation, input, text) in [
            ("get", "other.corp.example", "credentials not found in native keychain\n"),
            ("get", "http://registry.corp.example", "credentials not found in native keychain\n"),
            ("get", "", "no credentials server URL\n"),
            ("store", "{}", "Countersign stores no credentials of docker; `countersign enroll PROFILE` signs you in\n"),
            ("erase", "x", "Countersign has no credentials of docker; `countersign unenroll` signs you out\n"),
            (
                "gte", "",
                "\"gte\" is none of get, store, erase and list; docker runs this command, with one of these words\n"
            ),
        ] {
            let result = try bench.sandbox.countersign("token", "docker", operation, input: input)
            #expect(result.status == 1 && result.output == text, "\(operation): \(result.said)")
        }
        try bench.sandbox.succeed("token", "deny", "work")
        let refused = try bench.sandbox.countersign("token", "docker", "get", input: "registry.corp.example")
        #expect(refused.status == 1 && refused.output.contains("`countersign token allow work`"), "\(refused.said)")
        #expect(try bench.sandbox.countersign("token", "docker", "list").output == "{}\n")
    }

    // MARK: kubectl

    private func kubectl(_ bench: SignInSandbox, _ info: String?, _ flags: String...) throws -> CommandResult {
        try bench.run(
            ["token", "kubectl", "work"] + flags, environment: info.map { ["KUBERNETES_EXEC_INFO": $0] } ?? [:])
    }

    private static func info(_ version: String, spec: String = #"{"interactive":false}"#) -> String {
        #"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/\#(version)","spec":\#(spec)}"#
    }

    @Test(arguments: ["v1", "v1beta1"]) func kubectlGetsTheVersionThatItWants(version: String) throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let result = try kubectl(bench, Self.info(version))
        let value = try json(result.output)
        #expect(result.status == 0 && value["kind"] as? String == "ExecCredential", "\(result.said)")
        #expect(value["apiVersion"] as? String == "client.authentication.k8s.io/\(version)")
        let status = try #require(value["status"] as? [String: String])
        #expect(status["token"] == "first" && status.keys.sorted() == ["expirationTimestamp", "token"])
        let time = try #require(ISO8601DateFormatter().date(from: status["expirationTimestamp"] ?? ""))
        #expect(abs(time.timeIntervalSinceNow - 3600) < 300)
        #expect(try json(kubectl(bench, nil).output)["apiVersion"] as? String == "client.authentication.k8s.io/v1")
    }

    @Test func kubectlsClusterHasToBeListed() throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let right = try kubectl(
            bench, Self.info("v1", spec: #"{"cluster":{"server":"https://api.corp.example"},"interactive":true}"#))
        #expect(right.status == 0 && right.output.contains("first"), "\(right.said)")
        let wrong = try kubectl(
            bench, Self.info("v1", spec: #"{"cluster":{"server":"https://evil.example:6443"},"interactive":true}"#))
        #expect(wrong.status == 1 && wrong.output.isEmpty, "\(wrong.said)")
        #expect(wrong.error.contains("https://evil.example:6443 is not listed"), "\(wrong.said)")
    }

    @Test(arguments: [
        ("{", "is not an ExecCredential in JSON"), (#"{"kind":"Pod","apiVersion":"v1"}"#, "is not an ExecCredential"),
        (info("v1alpha1"), "kubectl wants \"client.authentication.k8s.io/v1alpha1\""),
    ])
    func anotherRequestIsRefused(text: String, reason: String) throws {
        let bench = try TokenTests.signedIn()
        let result = try kubectl(bench, text)
        #expect(result.status == 1 && result.output.isEmpty && result.error.contains(reason), "\(result.said)")
    }
}
