// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Programs that people use, at servers that want a token in each request, by `countersign exec`.
@Suite(.waiting) struct RealClientTests {
    private static let token = "kanarie-live-0123456789"
    private static let bearer = "inject=header:Authorization: Bearer {secret}"

    /// The SDKs of two kinds of language models.
    enum SDK: String, CaseIterable, Sendable {
        case openai, anthropic

        /// Its own variables, with a placeholder for the key.
        func environment(_ site: String) -> [String: String] {
            switch self {
            case .openai: ["OPENAI_API_KEY": "no-key-needed", "OPENAI_BASE_URL": "\(site)/v1"]
            case .anthropic: ["ANTHROPIC_API_KEY": "no-key-needed", "ANTHROPIC_BASE_URL": site]
            }
        }

        /// What its calls print, at a site that is listed with `line`.
        func calls(_ line: String) throws -> CommandResult {
            let server = try TokenServer("model_server.py", token: token)
            let user = try Countersign()
            try user.enroll(token: token)
            let site = "https://\(rawValue).test.localhost:\(server.port)"
            try user.allow("\(site) credential=api placeholder=no-key-needed \(line)")
            return try user.run(
                ["exec", "--", Tool.python(), Tool.client("model_client.py"), rawValue],
                environment: environment(site))
        }
    }

    /// The last piece of a stream comes only after the client has had those before it, so none is held back.
    @Test(arguments: SDK.allCases) func anSDKHasAnswersAndStreamsWithoutItsKey(_ sdk: SDK) throws {
        let done = try sdk.calls("\(Self.bearer) redact=yes")
        let lines = done.output.split(separator: "\n")
        #expect(done.status == 0 && lines.count == 4, "\(done.said)")
        #expect(
            lines.prefix(3) == ["models ['small']", "answer Hello from the server", "stream Hello| from| the| server"])
        let stars = String(repeating: "*", count: Self.token.utf8.count)
        #expect(lines.last?.contains("Authorization: Bearer \(stars)\\n") == true, "\(done.said)")
        #expect(!done.said.contains(Self.token) && done.error.isEmpty, "\(done.said)")
    }

    /// Which field an SDK uses depends on its version.
    @Test func aPlaceholderInAnotherPlaceIsNotReplaced() throws {
        let done = try SDK.openai.calls("inject=header:X-Api-Key: {secret}")
        #expect(done.output.contains("Incorrect API key provided: no-key-needed"), "\(done.said)")
        #expect(!done.said.contains(Self.token))
    }

    @Test func aPlaceholderInAnotherPlaceIsSaid() throws {
        let server = try TokenServer("model_server.py", token: Self.token)
        let user = try Countersign()
        try user.enroll(token: Self.token)
        let site = "https://api.test.localhost:\(server.port)"
        try user.allow("\(site) credential=api inject=header:X-Api-Key: {secret} placeholder=no-key-needed")
        let proxy = try user.serve()
        func reason(_ authorization: String) throws -> String {
            try proxy.send(
                .curl, HTTPClient.Request(url: site + "/v1/models", fields: [("Authorization", authorization)])
            ).proxyStatus
        }
        #expect(
            try reason("Bearer no-key-needed").contains(
                "the placeholder is in Authorization, and the line names the field X-Api-Key"))
        #expect(try reason("Bearer mine").contains("the client authenticates itself"))
    }

    @Test func aRejectedTokenIsNamedAtTheEnd() throws {
        let server = try TokenServer("model_server.py", token: "another-token")
        let user = try Countersign()
        try user.enroll(token: Self.token)
        let site = "https://api.test.localhost:\(server.port)"
        try user.allow("\(site) credential=api \(Self.bearer) redact=yes")
        let done = try user.run(["exec", "--", Tool.path("curl"), "-q", "-sS", "\(site)/v1/models"])
        #expect(done.error.contains("\(site): credential \"api\" was rejected"), "\(done.said)")
        #expect(!done.error.contains("has no challenge") && !done.said.contains(Self.token), "\(done.said)")
    }

    // MARK: Packages

    private func registry(_ line: String) throws -> (server: TokenServer, user: Countersign, site: String) {
        let server = try TokenServer("package_server.py", token: Self.token)
        let user = try Countersign()
        try user.enroll(token: Self.token)
        let site = "packages.test.localhost:\(server.port)"
        try user.allow("https://\(site) credential=api placeholder=no-key-needed \(line)")
        return (server, user, site)
    }

    @Test(arguments: ["", "__token__:no-key-needed@"]) func pipInstallsFromAPrivateIndex(login: String) throws {
        let (server, user, site) = try registry("inject=basic:__token__:{secret}")
        let folder = user.folder.file("packages")
        let done = try user.run([
            "exec", "--", Tool.python(), "-m", "pip", "--isolated", "--no-cache-dir", "download", "-q", "--no-deps",
            "--disable-pip-version-check", "-d", folder, "--index-url", "https://\(login)\(site)/simple/", "probe",
        ])
        #expect(done.status == 0, "\(done.said)")
        #expect(FileManager.default.fileExists(atPath: "\(folder)/probe-1.0-py3-none-any.whl"))
        #expect(server.requests.allSatisfy { $0.hasPrefix("200 Basic ") }, "\(server.requests)")
        #expect(!done.said.contains(Self.token))
    }

    // MARK: GitHub

    @Test func gitClonesAndPushesWithAGitHubApp() throws {
        let server = try GitHubServer()
        let user = try Countersign()
        try user.succeed(
            "enroll", "github-app", "--client-id", "app-1", "--installation", "42", "--key", server.key, "--api",
            "\(server.url)/api/v3", "--name", "app", "--yes")
        try user.allow(
            "\(server.url) credential=app \(Self.bearer) paths=/api/**",
            "\(server.url) credential=app inject=basic:x-access-token:{secret} placeholder=no-key-needed")
        let script = """
            git clone -q "$0/jdoe/tools.git" copy
            git clone -q "https://x-access-token:no-key-needed@${0#https://}/jdoe/tools.git" other
            echo text > copy/file
            git -C copy add file
            git -C copy -c user.name=a -c user.email=a@b.example commit -q -m second
            git -C copy push -q origin HEAD:refs/heads/pushed
            git -C other ls-remote origin refs/heads/pushed
            curl -q -sSf "$0/api/v3/installation/repositories"
            """
        let done = try user.run([
            "exec", "--", "env", "-C", user.folder.path, "sh", "-ec", script, server.url,
        ])
        #expect(done.status == 0 && done.output.contains("refs/heads/pushed"), "\(done.said)")
        #expect(done.output.contains("\"full_name\": \"jdoe/tools\"") && !done.said.contains("ghs_"), "\(done.said)")
        // git has not been asked for a login, so that it sends no request twice.
        #expect(server.requests.allSatisfy { $0.hasPrefix("20") }, "\(server.requests)")
        #expect(server.requests.contains("200 Bearer /api/v3/installation/repositories"))
    }
}
