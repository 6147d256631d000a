// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign token git`, with Debian's git, and with requests of newer ones.
@Suite(.waiting) struct TokenGitTests {
    /// A repository at an https site, and a person whose token it wants.
    private final class Bench: Sendable {
        let signIn: SignInSandbox
        let origin: ChildProcess
        let url: String
        let log: String

        init(isListed: Bool = true) throws {
            let folder = try TemporaryFolder("git")
            let made = try Command.run(
                "/bin/sh",
                [
                    "-ec",
                    """
                    export GIT_CONFIG_GLOBAL=/dev/null HOME="$PWD"
                    git init -q work; cd work
                    git -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m 'the only commit'
                    cd ..; git clone -q --bare work tools.git; git -C tools.git update-server-info
                    """,
                ], environment: ["PATH": "/usr/bin:/bin"], folder: folder.path, in: folder)
            guard made.status == 0 else { throw HarnessError(made.said) }
            let pki = try TestPKI.shared
            log = folder.file("requests")
            origin = try ChildProcess(
                try Tool.python(),
                [
                    Tool.server("git_origin.py"), folder.path, pki.certificate("server"), pki.key("server"), "first",
                    log,
                ], capture: folder.file("server"))
            let port = try origin.line(after: "listening ")
            url = "https://git.test.localhost:\(port)"
            self.folder = folder
            signIn = try TokenTests.signedIn(
                ["token": ["first"]], profile: ["sites": isListed ? [url] : ["https://api.corp.example"]])
        }

        private let folder: TemporaryFolder

        func clone(_ config: String, _ target: String = "copy") throws -> CommandResult {
            try signIn.sandbox.sh(
                """
                export GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_CONFIG_NOSYSTEM=1
                git -c http.sslCAInfo='\(try TestPKI.shared.originAnchor)' \(config) clone -q \(url)/tools.git \(target)
                git -C \(target) log -1 --format=%s
                """)
        }
    }

    @Test func gitClonesWithTheToken() throws {
        let bench = try Bench()
        let result = try bench.clone("-c credential.helper='!countersign token git'")
        #expect(result.status == 0 && result.output == "the only commit\n", "\(result.said)")
        #expect(TextFile.lines(bench.log).first == "401 - -" && TextFile.lines(bench.log)[1] == "200 Basic oauth2")
        #expect(!result.error.contains("first"))
    }

    /// git adds `git-credential-` to the helper's name.
    @Test func gitFindsTheLink() throws {
        let bench = try Bench()
        try FileManager.default.createSymbolicLink(
            atPath: bench.signIn.file("git-credential-countersign"), withDestinationPath: try Sandbox.executable)
        let result = try bench.clone("-c credential.helper=\"$PWD/git-credential-countersign --user jdoe\"")
        #expect(result.status == 0 && result.output == "the only commit\n", "\(result.said)")
        #expect(TextFile.lines(bench.log)[1] == "200 Basic jdoe")
    }

    @Test func anotherSiteGetsNothing() throws {
        let bench = try Bench(isListed: false)
        let result = try bench.clone("-c credential.helper='!countersign token git'")
        #expect(result.status != 0 && result.error.contains("terminal prompts disabled"), "\(result.said)")
        #expect(TextFile.lines(bench.log).allSatisfy { $0 == "401 - -" })
    }

    @Test func aTokenThatIsNotPermittedIsNamed() throws {
        let bench = try Bench()
        try bench.signIn.sandbox.succeed("token", "deny", "work")
        let result = try bench.clone("-c credential.helper='!countersign token git'")
        #expect(result.status != 0 && result.error.contains("`countersign token allow work`"), "\(result.said)")
        #expect(TextFile.lines(bench.log).allSatisfy { $0 == "401 - -" })
    }

    // MARK: Requests

    private static let request = "protocol=https\nhost=api.corp.example\n"

    /// git-credential(1) of 2.46 and later.
    @Test func gitThatSendsBearerGetsIt() throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let result = try bench.sandbox.countersign(
            "token", "git", "get", input: "capability[]=authtype\ncapability[]=state\n\(Self.request)\n")
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(
            lines.dropLast() == ["capability[]=authtype", "authtype=Bearer", "credential=first", "ephemeral=1"],
            "\(result.said)")
        let time = try #require(lines.last?.split(separator: "=").last.flatMap { Double($0) })
        #expect(lines.last?.hasPrefix("password_expiry_utc=") == true)
        #expect(abs(Date(timeIntervalSince1970: time).timeIntervalSinceNow - 3600) < 300)
    }

    @Test(arguments: [
        (["get"], "protocol=http\nhost=api.corp.example\n"), (["get"], "protocol=https\nhost=none.corp.example\n"),
        (["get"], "protocol=https\n"), (["get"], ""), (["store"], request), (["erase"], request), (["sotre"], request),
        (["--name", "other", "get"], "protocol=https\nhost=none.corp.example\n"),
    ])
    func otherRequestsGetNothing(arguments: [String], input: String) throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let result = try bench.run(["token", "git"] + arguments, input: input)
        #expect(result.status == 0 && result.output.isEmpty && result.error.isEmpty, "\(result.said)")
    }

    @Test func theUserOfTheURLStays() throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let result = try bench.sandbox.countersign("token", "git", "get", input: "\(Self.request)username=jane\n")
        #expect(result.output.hasPrefix("username=jane\npassword=first\n"), "\(result.said)")
    }

    @Test func whatGitDoesNotWriteIsRefused() throws {
        let bench = try TokenTests.signedIn()
        let faulty = try bench.sandbox.countersign("token", "git", "get", input: "api.corp.example\n")
        #expect(faulty.status == 1 && faulty.error.contains("not key=value"), "\(faulty.said)")
        let long = try bench.sandbox.countersign(
            "token", "git", "get", input: String(repeating: "a=b\n", count: 20_000))
        #expect(long.status == 1 && long.error.contains("more than 65536 bytes"), "\(long.said)")
    }
}
