// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// `countersign exec` configures clients through their environment.
@Suite(.waiting) struct ExecTests {
    @Test(arguments: HTTPClient.allCases, Array(Row.all.prefix(12)))
    func clientNeedsOnlyItsEnvironment(_ client: HTTPClient, _ row: Row) throws {
        guard case .answered(let body) = row.outcome else { return }
        let setting = try Setting.shared
        let out = setting.user.folder.file("exec-\(client)-\(row.name.filter { $0.isLetter || $0.isNumber })")
        let url = row.url(setting.origins, query: "exec-\(client)")
        let command =
            switch client {
            case .curl: [try Tool.path("curl"), "-q", "-sSf", "-o", out, url]
            case .wget: ["wget", "--no-hsts", "-nv", "-O", out, url]
            case .requests: [try Tool.python(), Tool.server("client.py"), "GET", url, "env", "-", "-", out]
            }
        let done = try setting.user.run(["exec", "--"] + command)
        #expect(done.status == 0 && TextFile.text(out) == body, "\(done.said)")
    }

    @Test(arguments: [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -15 $$", 143)])
    func exitStatusIsTheCommands(_ script: String, _ status: Int32) throws {
        let done = try Countersign().run("exec", "--", "sh", "-c", script)
        #expect(done.status == status && done.output.isEmpty, "\(done.said)")
    }

    @Test func missingCommandIs127() throws {
        let done = try Countersign().run("exec", "--", "no-such-command-here")
        #expect(done.status == 127 && done.error.hasPrefix("countersign: error: "), "\(done.said)")
    }

    @Test func existingSettingsDoNotBypassTheProxy() throws {
        let user = try Countersign()
        let done = try user.run(
            ["exec", "--", "env"],
            environment: [
                "no_proxy": "test.localhost", "HTTPS_PROXY": "http://else:1", "CURL_CA_BUNDLE": "/nonexistent",
            ])
        let lines = done.output.split(separator: "\n")
        #expect(!lines.contains { $0.lowercased().hasPrefix("no_proxy=") }, "\(done.said)")
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY"] {
            #expect(lines.contains { $0.hasPrefix("\(name)=http://") && $0.contains("127.0.0.1:") }, "\(done.said)")
        }
        #expect(!lines.contains("CURL_CA_BUNDLE=/nonexistent"), "\(done.said)")
    }

    @Test func standardInputReachesTheCommand() throws {
        let done = try Countersign().run(["exec", "--", "cat"], input: "through\n")
        #expect(done.output == "through\n", "\(done.said)")
    }

    @Test func proxyEndsWithTheCommand() throws {
        let done = try Countersign().run("exec", "--", "sh", "-c", "echo $https_proxy")
        let port = done.output.split(separator: ":").last.flatMap { Int($0.prefix { $0.isNumber }) }
        #expect(!Loopback.answers(port: try #require(port)))
    }
}
