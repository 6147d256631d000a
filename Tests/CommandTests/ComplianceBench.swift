// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation

/// A sign-in whose provider requires a protection policy, and the organisation's compliance service.
final class ComplianceBench: Sendable {
    let bench: SignInSandbox
    let service: ComplianceServer

    /// `requires`: the provider requires the policy from the beginning.
    init(
        _ script: [String: any Sendable] = [:], service own: [String: any Sendable] = [:],
        control: [String: any Sendable] = [:], requires: Bool = true, isTLS: Bool = false
    ) throws {
        service = try ComplianceServer(script, isTLS: isTLS)
        var control = control
        if requires { control["policy"] = service.policy }
        let compliance: [String: any Sendable] = ["url": service.url, "protapp": true].merging(own) { _, new in new }
        bench = try SignInSandbox(
            control,
            profile: [
                "name": "work", "sites": ["https://api.corp.example"], "compliance_service": compliance,
            ], isTLS: isTLS)
    }

    /// From now on, the provider requires the policy, and it is not applied.
    func requirePolicy(_ control: [String: any Sendable] = [:]) throws {
        try? FileManager.default.removeItem(atPath: service.policy)
        try bench.provider.change(["policy": service.policy].merging(control) { _, new in new })
    }

    func countersign(_ words: String..., environment: [String: String] = [:]) throws -> CommandResult {
        try bench.run(words, environment: environment)
    }

    var contents: VaultContents {
        get throws {
            try SealedVault(home: bench.file("home")).open { throw HarnessError("the vault has a passphrase") }.contents
        }
    }

    func change(_ body: (inout VaultContents) throws -> Void) throws {
        try SealedVault(home: bench.file("home")).open { throw HarnessError("the vault has a passphrase") }
            .update(body)
    }

    /// The requests that begin a remediation.
    var remediations: [ComplianceServer.Request] { service.requests.filter { $0.action == "remediate" } }

    /// The requests to the service: `remediate silent`, `page`, `status`.
    var asked: [String] {
        service.requests.map { request in request.action + (request.silent == true ? " silent" : "") }
    }
}
