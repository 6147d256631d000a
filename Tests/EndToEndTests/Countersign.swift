// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// A user with a separate home, running the built executable.
final class Countersign: Sendable {
    static let user = "jdoe"
    /// Secrets that must not appear anywhere but at the origin.
    static let password = "kanarie-7f3b9c"
    static let wrongPassword = "kanarie-wrong-04e1"

    let home: String
    let folder: TemporaryFolder

    /// - Parameter anchors: trust anchors for origins (default: the good origins' root).
    init(anchors: [String]? = nil) throws {
        folder = try TemporaryFolder("home")
        home = folder.file("home")
        for (index, anchor) in try (anchors ?? [TestPKI.shared.originAnchor]).enumerated() {
            try folder.write("home/Certs/anchors/anchor-\(index).pem", TextFile.bytes(anchor))
        }
    }

    /// The executable: COUNTERSIGN_EXECUTABLE, or the one beside this test bundle.
    static var executable: String {
        get throws {
            if let chosen = ProcessInfo.processInfo.environment["COUNTERSIGN_EXECUTABLE"] { return chosen }
            let bundle = URL(fileURLWithPath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent().path
            for folder in [bundle, "\(Tool.repository)/.build/debug"] {
                let candidate = "\(folder)/countersign"
                if access(candidate, X_OK) == 0 { return candidate }
            }
            throw HarnessError("no executable \"countersign\" in \"\(bundle)\": run swift build")
        }
    }

    // MARK: Commands

    /// Runs a command with `--home` inserted, before a `--` if there is one.
    func run(
        _ arguments: String..., input: String? = nil, environment: [String: String] = [:], seconds: Double = patience
    ) throws -> CommandResult {
        try run(arguments, input: input, environment: environment, seconds: seconds)
    }

    /// Without the Kerberos tickets of the user who runs the tests.
    var environment: [String: String] {
        ["HOME": folder.path, "KRB5CCNAME": "FILE:\(folder.file("tickets"))"]
    }

    func run(
        _ arguments: [String], input: String? = nil, environment: [String: String] = [:], seconds: Double = patience
    ) throws -> CommandResult {
        let place = arguments.firstIndex(of: "--") ?? arguments.endIndex
        var all = arguments
        all.insert(contentsOf: ["--home", home], at: place)
        let own = self.environment.merging(environment) { _, new in new }
        return try Command.run(
            try Self.executable, all, environment: own, input: input, in: folder, seconds: seconds)
    }

    /// Runs a command and expects status 0.
    @discardableResult
    func succeed(_ arguments: String..., input: String? = nil) throws -> String {
        let done = try run(arguments, input: input)
        guard done.status == 0 else {
            throw HarnessError("countersign \(arguments.joined(separator: " ")): \(done.said)")
        }
        return done.output
    }

    /// Adds lines to the list.
    func allow(_ lines: String...) throws {
        let file = "home/AllowedSites/test.sites"
        try folder.write(file, folder.text(file) + lines.map { $0 + "\n" }.joined())
    }

    func enroll(_ user: String = user, password: String = password, name: String = "enrollment") throws {
        try succeed("credential", "set", name, "--user", user, "--password-stdin", input: password)
    }

    /// Imports an identity from TestPKI.
    func importIdentity(_ name: String) throws {
        let pki = try TestPKI.shared
        try succeed(
            "certificate", "import", pki.pkcs12(name), "--name", name, "--password-stdin", input: pki.password)
    }

    /// The interception CA's root as a PEM file, for clients to trust.
    func exportedAnchor() throws -> String {
        try folder.write("interception.pem", try succeed("ca", "export"))
    }

    func serve(_ flags: String..., environment: [String: String] = [:]) throws -> RunningProxy {
        try RunningProxy(self, flags, environment: environment)
    }

    /// Replaces the list.
    func writeSites(_ text: String) throws {
        try folder.write("home/AllowedSites/test.sites", text)
    }
}

/// `countersign serve` on a free port; stops when this value is deinitialised.
final class RunningProxy: Sendable {
    let process: ChildProcess
    let port: Int
    let accessLog: String
    let anchor: String
    private let user: Countersign

    /// `prefix` is a command that runs it, such as `nsenter` with its options.
    init(
        _ user: Countersign, _ flags: [String], environment: [String: String] = [:], prefix: [String] = []
    ) throws {
        self.user = user
        let number = Int.random(in: 0..<Int.max)
        accessLog = user.folder.file("access-\(number).log")
        let command =
            prefix + [
                try Countersign.executable, "serve", "--listen", "127.0.0.1:0", "--home", user.home, "--access-log",
                accessLog,
            ]
        process = try ChildProcess(
            command[0], command.dropFirst() + flags,
            environment: user.environment.merging(environment) { _, new in new },
            capture: user.folder.file("serve-\(number)"))
        port = try Int(process.line(after: "countersign: listening on 127.0.0.1:")) ?? 0
        anchor = try user.exportedAnchor()
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// Sends a request through the proxy. The client trusts only the interception CA by default.
    func send(
        _ client: HTTPClient = .curl, _ request: HTTPClient.Request, anchors: String? = nil
    ) throws -> HTTPClient.Response {
        try client.send(request, proxy: url, anchors: anchors ?? anchor)
    }

    func get(_ url: String, flags: [String] = []) throws -> HTTPClient.Response {
        try send(.curl, HTTPClient.Request(url: url, flags: flags))
    }

    struct LogEntry: Decodable {
        let time: String
        let id: UInt64
        let pid: UInt64?
        let uid: UInt64?
        let method: String
        let site: String
        let decision: String
        let rule: String?
        let challenge: String?
        let credential: String?
        let revocation: String?
        let reason: String?
        let rounds: Int
        let status: Int
        let bytes: Int
        let ms: Int
    }

    /// The access log's lines for a site; waits until there are `count`.
    func logged(site: String, atLeast count: Int = 1) throws -> [LogEntry] {
        try poll {
            let entries = try TextFile.lines(accessLog)
                .map { try JSONDecoder().decode(LogEntry.self, from: Data($0.utf8)) }.filter { $0.site == site }
            return entries.count >= count ? entries : nil
        } ?? []
    }
}
