// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The pages of Microsoft's sign-in enrol the device, and the identity broker of the machine goes on: the real web
/// view, in a network of its own, and a stand-in for the broker on a private bus. One at a time, because each window
/// needs up to five processes.
@Suite(.waiting, .serialized, .enabled(if: BrokerPage.isPossible, "unshare(1) cannot make a network here"))
struct EmbeddedTransferTests {
    private static let enrolled = "msauth://in_app_enrollment_complete?status=success"
    private static let accounts: [String: any Sendable] = [
        "json": ["accounts": [IdentityBroker.account("jdoe@corp.example")]] as [String: any Sendable]
    ]
    private let display: VirtualDisplay
    private let page: BrokerPage
    private let sandbox: Sandbox

    init() throws {
        display = try VirtualDisplay()
        page = try BrokerPage(provider: ["first": [Self.enrolled]])
        sandbox = try Sandbox()
        try sandbox.folder.write(
            "profile.json",
            """
            {"name": "work", "issuer": "\(BrokerPage.url)", "client_id": "countersign-tests",
             "scopes": ["openid", "offline_access"], "redirect_uri": "com.example.app:/callback", "special_urls": {}}
            """)
        try sandbox.succeed("trust", "anchor", "add", page.anchor)
    }

    private func enroll(_ broker: IdentityBroker, _ flags: String...) throws -> CommandResult {
        let words =
            try page.inside + [
                "/usr/bin/setsid", "--wait", Sandbox.executable, "enroll", sandbox.folder.file("profile.json"),
                "--yes", "--events", "--user-agent", "embedded",
            ] + flags
        return try Command.run(
            words[0], Array(words.dropFirst()),
            environment: sandbox.environment(
                adding: display.windowEnvironment.merging(["DBUS_SESSION_BUS_ADDRESS": broker.address]) { $1 }),
            folder: sandbox.folder.path, in: sandbox.folder)
    }

    /// Without the progress of loads.
    private func events(_ result: CommandResult) throws -> [String] {
        try result.output.split(separator: "\n").compactMap { line in
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String] ?? [:]
            return event["event"].flatMap { $0.hasPrefix("load-") ? nil : $0 }
        }
    }

    @Test func theBrokerGoesOnAndTheWindowIsDismissed() throws {
        let broker = try IdentityBroker([
            "getAccounts": Self.accounts, "acquireTokenSilently": IdentityBroker.token("at-1", expires: 4_000_000_000),
        ])
        let result = try enroll(broker)
        #expect(result.status == 0, "\(result.said)")
        #expect(try events(result) == ["started", "page", "special-url", "stored"], "\(result.said)")
        #expect(result.output.contains(#""account":"jdoe@corp.example""#), "\(result.said)")
        #expect(broker.calls.map(\.method) == ["getAccounts", "getAccounts", "acquireTokenSilently"])
        // The provider's page has issued nothing.
        #expect(page.requests.contains("/authorize") && !page.requests.contains("/token"), "\(page.requests)")
        let status = try sandbox.succeed("status", "--json")
        #expect(status.contains("jdoe@corp.example"), "\(status)")
    }

    /// The broker is there, and has no token: the window repeats the sign-in.
    @Test func theWindowGoesOnIfTheBrokerCannot() throws {
        let broker = try IdentityBroker([
            "getAccounts": Self.accounts,
            "acquireTokenSilently": ["json": ["brokerTokenResponse": ["error": ["context": "no"]]]]
                as [String: any Sendable],
            "acquireTokenInteractively": ["json": ["brokerTokenResponse": ["error": ["context": "no"]]]]
                as [String: any Sendable],
        ])
        let result = try enroll(broker)
        #expect(result.status == 0, "\(result.said)")
        #expect(
            try events(result) == [
                "started", "page", "special-url", "unavailable", "authorized", "finished", "stored",
            ],
            "\(result.said)")
        #expect(result.output.contains("the identity broker does not go on with the sign-in"), "\(result.said)")
        #expect(broker.calls.map(\.method).prefix(3) == ["getAccounts", "getAccounts", "acquireTokenSilently"])
        #expect(page.requests.count { $0 == "/authorize" } == 2 && page.requests.contains("/token"))
    }

    /// A machine without a broker on its bus: the provider's wish is an error.
    @Test func withoutABrokerTheSignInEnds() throws {
        let broker = try IdentityBroker()
        broker.stop()
        let result = try enroll(broker)
        #expect(result.status == 1 && result.error.contains("only the provider's broker can go on"), "\(result.said)")
        #expect(broker.calls.isEmpty)
    }
}
