// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A provider whose pages ask for this device's certificate, in the real web view. One at a time, because each window
/// needs up to five processes.
@Suite(.waiting, .serialized) struct EmbeddedPKeyAuthTests {
    private let display: VirtualDisplay

    init() throws { display = try VirtualDisplay() }

    /// A home with an identity and a provider whose page leads to `origin`, and from there to the redirect URI.
    private func bench(_ origin: DeviceOrigin, line: String? = "answer=pkeyauth") throws -> SignInSandbox {
        let page = "\(origin.url)/page?go="
        let bench = try SignInSandbox(
            ["page": "<script>location = '\(page)' + encodeURIComponent('REDIRECT')</script>"],
            profile: [
                "redirect_uri": "com.example.app:/callback",
                "navigation_hosts": ["device.test.localhost:\(origin.port)"],
            ], isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        let pki = try TestPKI.shared
        try bench.sandbox.succeed(
            "certificate", "import", pki.pkcs12("laptop"), "--name", "laptop", "--password-stdin",
            input: "\(pki.password)\n")
        if let line { try bench.sandbox.succeed("sites", "add", origin.url, line) }
        return bench
    }

    private func enroll(_ bench: SignInSandbox) throws -> CommandResult {
        try bench.run(
            ["enroll", "profile.json", "--yes", "--user-agent", "embedded"],
            environment: display.windowEnvironment)
    }

    private static let knowsES256: [String: any Sendable] = ["algorithms": "RS256,ES256"]

    /// Also beside a server that has the vault open.
    @Test(arguments: [false, true]) func theDeviceProvesItself(besideServer: Bool) throws {
        let origin = try DeviceOrigin(Self.knowsES256)
        let bench = try bench(origin)
        let server = besideServer ? try bench.sandbox.serve("--listen", "127.0.0.1:0") : nil
        if let server { _ = try server.line(after: "countersign: listening on ") }
        let result = try enroll(bench)
        #expect(server.map { $0.exitStatus == nil } ?? true)
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        let requests = origin.requests
        #expect(requests.map(\.auth) == [nil, "PKeyAuth"] && requests.allSatisfy { $0.announced == ["1.0"] })
        #expect(requests.last?.parameters == ["AuthToken", "Context", "Version"])
        #expect(requests.last?.why == "ES256 CN=laptop,O=Test")
        #expect(result.said.contains("the page asks for urn:http-auth:PKeyAuth"), "\(result.said)")
    }

    @Test func withoutItsLineTheDeviceIsNotProved() throws {
        for (line, insists) in [(nil, true), ("answer=bearer", true), (nil, false)] {
            let origin = try DeviceOrigin(Self.knowsES256.merging(["insists": insists]) { $1 })
            let result = try enroll(bench(origin, line: line))
            #expect(result.status == 0, "\(result.said)")
            let requests = origin.requests
            // No window says that it has a certificate.
            #expect(requests.first?.announced == [] && requests.count == (insists ? 2 : 1))
            guard insists else { continue }
            #expect(requests.last?.parameters == ["Context", "Version"] && requests.last?.why == "unknown device")
            #expect(result.said.contains("no line with answer=pkeyauth"), "\(result.said)")
        }
    }

    /// The server goes on without the device.
    @Test func aCertificateThatTheServerDoesNotKnowIsNotUsed() throws {
        let origin = try DeviceOrigin(Self.knowsES256.merging(["authorities": "CN%3dother"]) { $1 })
        let result = try enroll(bench(origin))
        #expect(result.status == 0, "\(result.said)")
        #expect(origin.requests.last?.parameters == ["Context", "Version"])
        #expect(result.said.contains("no client identity is one that it accepts"), "\(result.said)")
    }

    @Test(arguments: ["https://evil.example/", "http://device.test.localhost/"])
    func theAnswerGoesNowhereElse(submit: String) throws {
        let origin = try DeviceOrigin(Self.knowsES256.merging(["submit": submit]) { $1 })
        let result = try enroll(bench(origin))
        #expect(result.status == 1 && result.error.contains("the device was not proved"), "\(result.said)")
        #expect(origin.requests.map(\.auth) == [nil])
    }
}
