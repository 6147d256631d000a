// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Providers that leave the sign-in to another server, which challenges. The proxy of the window answers it. One at a
/// time, because each window needs up to five processes.
@Suite(.waiting, .serialized) struct EmbeddedChallengeTests {
    private static let password = "canary-sso"
    private let display: VirtualDisplay

    init() throws { display = try VirtualDisplay() }

    /// A home with a provider whose page leads to the server at `port`, and from there to the redirect URI.
    private func bench(_ port: Int) throws -> SignInSandbox {
        let page = "https://sso.test.localhost:\(port)/page.html#"
        let bench = try SignInSandbox(
            ["page": "<script>location = '\(page)' + encodeURIComponent('REDIRECT')</script>"],
            profile: ["redirect_uri": "com.example.app:/callback", "navigation_hosts": ["sso.test.localhost:\(port)"]],
            isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        return bench
    }

    private func writePage(to root: String) throws {
        let page = """
            <!doctype html><title>SSO</title>
            <script>location = decodeURIComponent(location.hash.slice(1))</script>

            """
        try Data(page.utf8).write(to: URL(fileURLWithPath: "\(root)/page.html"))
    }

    private func enroll(_ bench: SignInSandbox) throws -> CommandResult {
        try bench.run(
            ["enroll", "profile.json", "--yes", "--user-agent", "embedded"],
            environment: display.windowEnvironment)
    }

    /// The dialogue stays on one connection to the server, and is bound to its certificate.
    @Test(arguments: [false, true]) func aServerWithNTLMIsAnswered(throughServer: Bool) throws {
        let origin = try ChallengingOrigin(.ntlm, user: "ACME\\jdoe", password: Self.password)
        try writePage(to: origin.root)
        let bench = try bench(origin.port)
        try bench.sandbox.succeed(
            "credential", "set", "sso", "--user", "ACME\\jdoe", "--password-stdin", input: "\(Self.password)\n")
        try bench.sandbox.succeed(
            "sites", "add", "https://sso.test.localhost:\(origin.port)", "answer=ntlm", "credential=sso")
        let server = throughServer ? try bench.serveWithPassphrase() : nil
        let result = try enroll(bench)
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        let requests = origin.log.requests(path: "/page.html")
        #expect(requests.map(\.auth) == [nil, "negotiate", "authenticate"])
        #expect(requests.map(\.status) == [401, 401, 200] && requests.last?.user == "ACME\\jdoe")
        for said in [result.said, server?.errorOutput ?? ""] { #expect(!said.contains("canary"), "\(said)") }
    }

    @Test(arguments: ["1.2", "1.3"], [false, true])
    func aServerThatAsksForACertificateGetsIt(version: String, throughServer: Bool) throws {
        let nginx = try NginxOrigin()
        try writePage(to: nginx.root)
        let port = version == "1.2" ? nginx.mutual12Port : nginx.mutual13Port
        let bench = try bench(port)
        let pki = try TestPKI.shared
        try bench.sandbox.succeed(
            "certificate", "import", pki.pkcs12("laptop"), "--name", "laptop", "--password-stdin",
            input: "\(pki.password)\n")
        try bench.sandbox.succeed("sites", "add", "https://sso.test.localhost:\(port)", "answer=certificate")
        let server = throughServer ? try bench.serveWithPassphrase() : nil
        let result = try enroll(bench)
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        let requests = nginx.log.requests(path: "/page.html")
        #expect(requests.map(\.status) == [200] && requests.map(\.client) == ["CN=laptop,O=Test"])
        #expect(requests.map(\.tls) == ["TLSv\(version)"] && server?.exitStatus == nil)
    }
}
