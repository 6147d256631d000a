// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The questions of `serve` at a line with `approve=`: keys on its terminal, and buttons of the desktop.
@Suite(.waiting) struct ServeQuestionTests {
    private static let password = "canary-password"

    private let sandbox: Sandbox
    private let origin: ChallengingOrigin
    private let url: String

    init() throws {
        sandbox = try Sandbox()
        origin = try ChallengingOrigin(.basic, user: "jdoe", password: Self.password)
        url = "https://asked.test.localhost:\(origin.port)"
        try sandbox.folder.write(
            "home/Certs/anchors/origin.pem", TextFile.bytes(try TestPKI.shared.originAnchor))
        try sandbox.folder.write("home/AllowedSites/test.sites", "\(url) answer=basic approve=ask\n")
        try sandbox.succeed(
            "credential", "set", "enrollment", "--user", "jdoe", "--password-stdin", input: "\(Self.password)\n")
    }

    private func serveOnTerminal() throws -> PseudoTerminal {
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "serve", "--listen", "127.0.0.1:0", "--no-notify"],
            environment: try sandbox.environment())
        try terminal.waits(for: "countersign: listening on 127.0.0.1:")
        return terminal
    }

    private struct Server: Decodable {
        let pid: pid_t
        let addresses: [String]
    }

    private func server() throws -> Server {
        struct Status: Decodable { let server: Server }
        return try JSONDecoder().decode(Status.self, from: Data(sandbox.succeed("status", "--json").utf8)).server
    }

    /// A request that is asked about. Its output is the content and, on the last line, the status.
    private func client() throws -> ChildProcess {
        let anchor = try sandbox.folder.write("interception.pem", try sandbox.succeed("ca", "export"))
        let address = try #require(try server().addresses.first)
        return try ChildProcess(
            try Tool.path("curl"),
            [
                "-q", "-sS", "-w", "\n%{http_code}", "-x", "http://\(address)", "--cacert", anchor,
                "\(url)/echo?secret",
            ], capture: sandbox.folder.file("client-\(UUID().uuidString)"))
    }

    private func status(of client: ChildProcess) -> String? {
        guard client.waitForExit() == 0 else { return nil }
        return client.output.split(separator: "\n").last.map(String.init)
    }

    @Test func aKeyOnTheTerminalAnswers() throws {
        let terminal = try serveOnTerminal()
        let wasEchoing = terminal.echoes
        #expect(wasEchoing, "nothing is asked")
        let first = try client()
        try terminal.waits(for: "countersign: question: 1: press a to allow it once")
        #expect(!terminal.echoes)
        #expect(origin.log.requests.isEmpty, "nothing was sent")
        try terminal.press("a", until: "countersign: question: 1: permitted once")
        #expect(status(of: first) == "200")
        let second = try client()
        try terminal.waits(for: "countersign: question: 2: press a to allow it once")
        try terminal.press("d", until: "countersign: question: 2: refused")
        #expect(status(of: second) == "403")
        let lines = terminal.screen.split(separator: "\r\n").filter { $0.contains("to send GET to \(url)") }
        #expect(lines.count == 2, "each question is printed once: \(lines)")
        #expect(lines.allSatisfy { $0.contains("with \"enrollment\", ") && !$0.contains("secret") })
        let isRestored: Bool? = poll { terminal.echoes ? true : nil }
        #expect(isRestored == true)
    }

    @Test func aButtonOfTheDesktopAnswers() async throws {
        let desktop = try NotificationServer()
        let server = try sandbox.serve(environment: ["DBUS_SESSION_BUS_ADDRESS": desktop.bus.address])
        let first = try client()
        let shown = try #require(try await desktop.calls(of: "Notify", count: 1).first)
        #expect(shown.summary == "Permit GET to \(url)?")
        let body = try #require(shown.body)
        #expect(body.contains("/curl wants to use the credential") && !body.contains("secret"), "\(body)")
        // Without a terminal, the log has the question.
        #expect(server.errorOutput.contains("curl waits to send GET to \(url) with \"enrollment\", as question 1: "))
        try desktop.press("allow-once", of: try #require(shown.number))
        #expect(status(of: first) == "200")
        _ = try await desktop.calls(of: "CloseNotification", count: 1)
        let second = try client()
        let again = try #require(try await desktop.calls(of: "Notify", count: 2).last)
        try desktop.press("deny", of: try #require(again.number))
        #expect(status(of: second) == "403")
        #expect(origin.log.requests.allSatisfy { $0.status == 200 || $0.status == 401 })
    }

    @Test func aRestartInPlaceRefusesTheQuestionThatIsOpen() throws {
        let terminal = try serveOnTerminal()
        let before = try server().pid
        let waiting = try client()
        try terminal.waits(for: "countersign: question: 1: press a to allow it once")
        kill(before, SIGUSR2)
        #expect(status(of: waiting) == "403")
        #expect(waiting.output.contains("the proxy has restarted before a person had agreed"), "\(waiting.output)")
        try terminal.waits(for: "countersign: question: 1: not answered: ")
        let after = try server().pid
        defer { kill(after, SIGTERM) }
        #expect(after != before && terminal.echoes)
        // The process that has taken over has its own questions, and is not the terminal's program any more.
        let next = try client()
        let isAsked: Bool? = try poll {
            try sandbox.succeed("approve").contains("GET \(url)") ? true : nil
        }
        #expect(isAsked == true)
        try sandbox.succeed("approve", "1")
        #expect(status(of: next) == "200")
    }
}
