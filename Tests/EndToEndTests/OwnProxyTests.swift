// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign exec` with clients whose own configuration names another proxy, which is dead.
@Suite(.waiting) struct OwnProxyTests {
    private static let dead = "http://127.0.0.1:9"

    enum Client: String, CaseIterable, Sendable {
        case wget, curl, git, pip, apt
    }

    /// A user whose clients are configured, and a site that challenges.
    private struct Site {
        let user: Countersign
        let origin: ChallengingOrigin
        let url: String

        init() throws {
            user = try Countersign()
            origin = try .acme(.basic)
            url = "https://own.test.localhost:\(origin.port)"
            try user.enroll()
            try user.allow(url)
            let root = URL(fileURLWithPath: origin.root)
            try Data("a file\n".utf8).write(to: root.appendingPathComponent("file"))
            try Data().write(to: root.appendingPathComponent("Packages"))
            for (name, text) in [
                (".wgetrc", "https_proxy = \(dead)\nproxy_user = me\nproxy_password = wrong\nuser_agent = kept\n"),
                (
                    ".curlrc",
                    "proxy = \"\(dead)\"\n --preproxy socks5://127.0.0.1:8\nproxy-user = \"me:wrong\"\n"
                        + "user-agent = \"kept\"\n"
                ),
                (".gitconfig", "[http]\n\tproxy = \(dead)\n\tuserAgent = kept\n"),
                (".config/pip/pip.conf", "[global]\nproxy = \(dead)\n"),
                ("apt/parts/proxy.conf", "Acquire::https::Proxy \"\(dead)\";\nAcquire::https::Proxy::a \"\(dead)\";\n"),
                ("apt/sources.list", "deb [trusted=yes] \(url)/ ./\n"),
                ("apt/mine.conf", "Dir::Etc::Parts \"\(user.folder.file("apt/parts"))\";\n"),
            ] {
                try user.folder.write(name, text)
            }
        }
    }

    private func command(_ client: Client, _ site: Site) throws -> [String] {
        let folder = site.user.folder
        switch client {
        case .wget: return ["wget", "--no-hsts", "-nv", "--tries=1", "-O", "-", "\(site.url)/file"]
        case .curl: return ["curl", "-sSf", "\(site.url)/file"]
        case .git: return ["git", "ls-remote", "\(site.url)/git/none.git"]
        case .pip:
            return [
                try Tool.python(), "-m", "pip", "download", "--no-deps", "--retries=0",
                "\(site.url)/own-1.0-py3-none-any.whl",
            ]
        case .apt:
            let state = folder.file("apt/state")
            let options = [
                "Dir::State::lists=\(state)/lists", "Dir::Cache=\(state)/cache", "Dir::Etc::sourceparts=-",
                "Dir::Etc::sourcelist=\(folder.file("apt/sources.list"))", "APT::Sandbox::User=root",
            ]
            return ["apt-get"] + options.flatMap { ["-o", $0] } + ["update"]
        }
    }

    @Test(arguments: Client.allCases)
    func clientUsesThisProxyAndKeepsItsOtherSettings(_ client: Client) throws {
        let site = try Site()
        for folder in ["lists/partial", "cache/archives/partial"] {
            try FileManager.default.createDirectory(
                atPath: site.user.folder.file("apt/state/\(folder)"), withIntermediateDirectories: true)
        }
        let done = try site.user.run(
            ["exec", "--"] + command(client, site),
            environment: ["APT_CONFIG": site.user.folder.file("apt/mine.conf"), "PATH": "/usr/bin:/bin"])
        let answered = site.origin.log.requests.filter { $0.user == Countersign.user }
        #expect(!answered.isEmpty, "\(done.said)")
        if [.wget, .curl].contains(client) { #expect(done.status == 0 && done.output == "a file\n", "\(done.said)") }
        #expect(!done.said.contains("127.0.0.1:9"), "\(done.said)")
    }

    @Test func aProxyOfGitForOneURLOrRemoteCausesAWarning() throws {
        let user = try Countersign()
        let settings = "[http \"https://me:canary@git.example/\"]\n\tproxy = \(Self.dead)\n"
        try user.folder.write(".gitconfig", settings + "[remote \"Up\"]\n\tproxy =\n[http]\n\tproxy = \(Self.dead)\n")
        let done = try user.run(["exec", "--", "true"], environment: ["PATH": "/usr/bin:/bin"])
        #expect(
            done.error.contains(
                """
                countersign: warning: git prefers http.https://git.example/.proxy, remote.Up.proxy of its \
                configuration, so that these requests bypass Countersign
                """), "\(done.said)")
        #expect(!done.said.contains("canary"))
    }
}
