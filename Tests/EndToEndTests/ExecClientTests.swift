// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Programs in many languages, run by `countersign exec`, at a listed site that challenges.
@Suite(.waiting) struct ExecClientTests {
    enum Program: String, CaseIterable, Sendable {
        case curl, urllib, requests, node, java, go, ruby, phpCurl, lwp, mercurial

        /// Prints the page at `url`.
        func command(_ url: String) throws -> [String] {
            switch self {
            case .curl: [try Tool.path("curl"), "-q", "-sSf", url]
            case .urllib: [try Tool.path("python3"), Tool.client("fetch.py"), url]
            case .requests:
                [try Tool.python(), "-c", "import requests, sys; print(requests.get(sys.argv[1]).text, end='')", url]
            case .node: [try Tool.path("node"), Tool.client("fetch.js"), url]
            case .java: [try Tool.path("java"), Tool.client("Fetch.java"), url]
            case .go: [try Tool.path("go"), "run", Tool.client("fetch.go"), url]
            case .ruby: [try Tool.path("ruby"), Tool.client("fetch.rb"), url]
            case .phpCurl:
                [
                    try Tool.path("php"), "-r",
                    """
                    $c = curl_init($argv[1]); curl_setopt($c, CURLOPT_FAILONERROR, true);
                    if (!curl_exec($c)) { fwrite(STDERR, curl_error($c)); exit(1); }
                    """, url,
                ]
            case .lwp:
                [
                    try Tool.path("perl"), "-MLWP::UserAgent", "-e",
                    "my $r = LWP::UserAgent->new->get($ARGV[0]); print $r->content; exit($r->is_success ? 0 : 1)", url,
                ]
            case .mercurial: [try Tool.path("hg"), "--config", "ui.interactive=no", "debugdownload", url]
            }
        }
    }

    @Test(arguments: Program.allCases)
    func programIsAnsweredAtAListedSite(_ program: Program) throws {
        let setting = try Setting.shared
        let url = "https://basic.test.localhost:\(setting.origins.apache.httpsPort)/basic/index?program-\(program)"
        let done = try setting.user.run(
            ["exec", "--"] + program.command(url), environment: ["GO111MODULE": "off"])
        #expect(done.status == 0 && done.output == "apache basic/index\n", "\(done.said)")
        let answered = poll {
            setting.origins.logged(query: "program-\(program)").first { $0.status == 200 }
        }
        #expect(answered?.user == Countersign.user)
    }

    @Test(arguments: Program.allCases)
    func programDoesNotTrustAnUntrustedSite(_ program: Program) throws {
        let setting = try BadOriginSetting.shared
        let origin = BadOrigin.all[0]
        let url = "https://\(try setting.place(origin))/open?program-\(program)"
        let done = try setting.user.run(
            ["exec", "--"] + program.command(url), environment: ["GO111MODULE": "off"])
        #expect(done.status != 0 && !done.output.contains(ChainOrigins.openText), "\(done.said)")
        #expect(try setting.logged(origin, "program-\(program)").isEmpty)
    }
}
