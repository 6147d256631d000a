// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// What is shown of a running proxy: events, metrics, the page, and the audit.
@Suite(.waiting) struct WatchingTests {
    /// A proxy for an origin that challenges with one scheme.
    private struct Site {
        let user: Countersign
        let origin: ChallengingOrigin
        let url: String
        let proxy: RunningProxy

        init(options: String = "", flags: [String] = []) throws {
            user = try Countersign()
            origin = try ChallengingOrigin.acme(.ntlm)
            url = "https://seen.test.localhost:\(origin.port)"
            try user.enroll()
            try user.writeSites("\(url) answer=ntlm domain=ACME \(options)\n")
            proxy = try RunningProxy(user, flags)
        }

        /// A request to the proxy's own port, as browsers send it.
        func direct(_ path: String, flags: [String] = [], body: String? = nil) throws -> HTTPClient.Response {
            let file = try body.map { try user.folder.write("body-\(Int.random(in: 0..<Int.max))", $0) }
            return try HTTPClient.curl.send(
                HTTPClient.Request(
                    method: body == nil ? "GET" : "POST",
                    url: "http://countersign.localhost:\(proxy.port)\(path)", body: file,
                    flags: ["--resolve", "countersign.localhost:\(proxy.port):127.0.0.1"] + flags),
                proxy: nil, anchors: proxy.anchor)
        }

        /// A session of the page.
        func session() throws -> String {
            let link = try user.succeed("ui", "--print").trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(link.hasPrefix("http://127.0.0.1:\(proxy.port)/#"), "\(link)")
            let token = link.split(separator: "#").last.map(String.init) ?? ""
            let response = try direct("/session", body: token)
            struct Reply: Decodable { let session: String }
            return try JSONDecoder().decode(Reply.self, from: Data(response.body)).session
        }
    }

    private struct Event: Decodable {
        let event: String
        let n: UInt64
        let site: String?
        let challenge: String?
        let credential: String?
        let offered: [String]?
        let check: String?
        let status: Int?
        let method: String?
    }

    private func events(_ path: String) -> [Event] {
        TextFile.lines(path).compactMap { try? JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
    }

    @Test func aReaderSeesRequestsRejectionsAndChangesOfTheHome() throws {
        let site = try Site()
        let output = site.user.folder.file("watch")
        let watch = try ChildProcess(
            try Countersign.executable, ["watch", "--json", "--home", site.user.home],
            environment: site.user.environment, capture: output)
        defer { watch.stop() }
        // Before there is a reader, nothing is told, so requests are repeated until one is seen.
        let answered: Event? = try poll {
            let status = try site.proxy.get("\(site.url)/echo").status
            #expect(status == 200)
            return events("\(output).out").first { $0.method == "GET" && $0.challenge == "ntlm" }
        }
        let seen = try #require(answered)
        #expect(seen.site == site.url && seen.credential == "enrollment" && seen.status == 200)
        try site.user.enroll(password: Countersign.wrongPassword)
        let isRejected: Bool? = try poll { try site.proxy.get("\(site.url)/echo").status == 401 ? true : nil }
        #expect(isRejected == true)
        let rejected: Event? = poll { events("\(output).out").first { $0.event == "rejected" } }
        #expect(rejected?.site == site.url && rejected?.credential == "enrollment")
        let refused: Event? = poll { events("\(output).out").first { $0.status == 401 } }
        #expect(refused?.check == "credential" && refused?.offered == ["ntlm"])
        try site.user.succeed("pause")
        let paused: Event? = poll { events("\(output).out").first { $0.event == "paused" } }
        #expect(paused != nil)
        let all = events("\(output).out")
        #expect(all.map(\.n) == Array(all[0].n..<(all[0].n + UInt64(all.count))), "no event is missing")
    }

    @Test func prometheusReadsTheMetrics() throws {
        let site = try Site()
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let text: String? = try poll {
            let text = try site.direct("/metrics").text
            return text.contains("countersign_answers_total{") ? text : nil
        }
        let metrics = try #require(text)
        let rule = "AllowedSites/test.sites:1"
        #expect(
            metrics.contains(
                "countersign_answers_total{countersign_scheme=\"ntlm\",countersign_site=\"\(rule)\"} 1\n"))
        #expect(metrics.contains("countersign_vault_unlocked 1\n"))
        #expect(!metrics.contains("seen.test.localhost"), "no host is a label")
        let file = try site.user.folder.write("metrics", metrics)
        let checked = try Command.run(
            "/bin/sh", ["-c", "promtool check metrics < \"$0\"", file], in: site.user.folder)
        #expect(checked.status == 0, "\(checked.said)")
        // The same on the control socket.
        let control = try Command.run(
            try Tool.path("curl"),
            ["-q", "-sS", "--unix-socket", "\(site.user.home)/run/control.sock", "http://localhost/healthz"],
            in: site.user.folder)
        #expect(control.output == "ok\n")
    }

    @Test func onlyTheOwnUsersBrowserGetsThePage() throws {
        let site = try Site()
        let page = try site.direct("/")
        #expect(page.status == 200 && page.text.contains("<title>"))
        #expect(page.values("Content-Security-Policy").first?.contains("default-src 'none'") == true)
        // A page of the Internet whose name leads here (DNS rebinding), and one that has found the address.
        #expect(try site.direct("/", flags: ["-H", "Host: rebound.example:\(site.proxy.port)"]).status == 400)
        #expect(try site.direct("/state").status == 401)
        #expect(try site.direct("/state", flags: ["-H", "Cookie: session=x"]).status == 401)
        let session = try site.session()
        let authorization = ["-H", "Authorization: Bearer \(session)"]
        let state = try site.direct("/state", flags: authorization)
        #expect(state.status == 200 && state.text.contains("\"listed\":[{\"rule\":\"AllowedSites/test.sites:1\""))
        // No page of another origin may read it: there is no permission of CORS.
        #expect(
            try site.direct("/state", flags: authorization + ["-H", "Origin: https://evil.example"])
                .values("Access-Control-Allow-Origin").isEmpty)
        // Through the proxy, too, and not to another user.
        let proxied = try site.proxy.get("http://countersign.localhost/", flags: ["--noproxy", ""])
        #expect(proxied.status == 200 && proxied.body == page.body)
        #expect(!state.text.contains(Countersign.password))
    }

    /// Asked by the product's own evaluator, as a browser asks it.
    @Test func theScriptForBrowsersSendsThemHereForListedSitesOnly() throws {
        let site = try Site()
        let script = try site.direct("/proxy.pac")
        #expect(script.status == 200 && script.text.contains("\"\(site.url)\": 1"), "\(script.text)")
        #expect(script.values("Content-Type") == ["application/x-ns-proxy-autoconfig"])
        let source = "pac:http://127.0.0.1:\(site.proxy.port)/proxy.pac"
        func way(to url: String) throws -> String {
            try site.user.succeed("route", "--parent", source, url).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        #expect(try way(to: "\(site.url)/x") == "http://127.0.0.1:\(site.proxy.port)")
        #expect(try way(to: "https://elsewhere.example/") == "direct")
        let rebound = ["-H", "Host: rebound.example:\(site.proxy.port)"]
        #expect(try site.direct("/proxy.pac", flags: rebound).status == 400)
        #expect(try site.direct("/proxy.pac", flags: ["-H", "Sec-Fetch-Site: cross-site"]).status == 403)
        // A new line counts at once, and with a parent everything goes to the proxy but the exceptions.
        try site.user.writeSites("https://other.example answer=ntlm\n")
        let isNew: Bool? = try poll { try site.direct("/proxy.pac").text.contains("other.example") ? true : nil }
        #expect(isNew == true)
        let behind = try Site(flags: ["--parent", "http://127.0.0.1:9", "--no-proxy", "corp.example,10.0.0.0/8"])
        let text = try behind.direct("/proxy.pac").text
        #expect(text.contains("isBelow(name, \"corp.example\")") && text.contains("isIn(name, 167772160, 16777216)"))
    }

    @Test func aLinkOpensThePageOnce() throws {
        let site = try Site()
        let link = try site.user.succeed("ui", "--print")
        let token = link.split(separator: "#").last.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? ""
        #expect(try site.direct("/session", body: token).status == 200)
        let again = try site.direct("/session", body: token)
        #expect(again.status == 403 && again.text.contains("countersign ui"), "\(again.said)")
    }

    @Test func aDryRunDecidesAndAnswersNothing() throws {
        for (options, flag) in [("dry-run=yes", nil), ("", "--dry-run")] as [(String, String?)] {
            let site = try Site(options: options, flags: flag.map { [$0] } ?? [])
            let response = try site.proxy.get("\(site.url)/echo")
            #expect(response.status == 401)
            #expect(
                response.proxyStatus.contains("dry run: would be answered with credential \\\"enrollment\\\""),
                "\(response.proxyStatus)")
            let logged = try site.proxy.logged(site: site.url, atLeast: 2).last
            #expect(logged?.challenge == nil && logged?.reason?.hasPrefix("dry run: ") == true)
            #expect(site.origin.log.requests.allSatisfy { $0.auth == nil || $0.auth == "-" }, "nothing was sent")
        }
    }

    // MARK: Approvals

    /// A request of a client that waits.
    private func waiting(_ site: Site, _ method: String = "POST") throws -> ChildProcess {
        try ChildProcess(
            try Tool.path("curl"),
            [
                "-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, "-d", "", "-x", site.proxy.url,
                "--cacert", site.proxy.anchor, "\(site.url)/echo",
            ], capture: site.user.folder.file("client-\(Int.random(in: 0..<Int.max))"))
    }

    private struct Question: Decodable {
        let id: UInt64
        let site: String
        let method: String
        let client: String
        let waiting: Int
    }

    private func questions(_ site: Site) throws -> [Question] {
        try JSONDecoder().decode([Question].self, from: Data(site.user.succeed("approve", "--json").utf8))
    }

    @Test func aRequestWaitsUntilThePersonAgrees() throws {
        let site = try Site(options: "approve=write")
        // A safe method does not wait.
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let clients = try (0..<3).map { _ in try waiting(site) }
        let question: Question? = try poll { try questions(site).first { $0.waiting == 3 } }
        let asked = try #require(question)
        #expect(asked.site == site.url && asked.method == "POST" && asked.client.hasSuffix("/curl"))
        #expect(clients.allSatisfy { $0.exitStatus == nil })
        #expect(site.origin.log.requests.allSatisfy { $0.method != "POST" }, "nothing was sent")
        #expect(try site.user.succeed("approve", "\(asked.id)", "--for", "15-minutes") == "permitted: 15-minutes\n")
        for client in clients {
            #expect(client.waitForExit() == 0)
            #expect(client.output == "200")
        }
        // For this program, nobody is asked again.
        let next = try waiting(site)
        #expect(next.waitForExit() == 0 && next.output == "200")
        let again = try site.user.run("approve", "\(asked.id)")
        #expect(again.status == 1 && again.error.contains("no question with the number"), "\(again.said)")
    }

    @Test func aRefusedRequestIsNotSent() throws {
        let site = try Site(options: "approve=ask")
        let client = try waiting(site, "GET")
        let question: Question? = try poll { try questions(site).first }
        _ = try site.user.succeed("approve", "\(try #require(question).id)", "--deny")
        #expect(client.waitForExit() == 0 && client.output == "403")
        #expect(site.origin.log.requests.isEmpty)
        let logged = try site.proxy.logged(site: site.url, atLeast: 2).last
        #expect(logged?.reason?.hasPrefix("the person has not agreed to this request") == true)
        // The question of a client that has gone is not asked any more.
        let gone = try waiting(site, "GET")
        let asked: Question? = try poll { try questions(site).first }
        #expect(asked != nil)
        gone.send(SIGKILL)
        let isOver: Bool? = try poll { try questions(site).isEmpty ? true : nil }
        #expect(isOver == true)
        // In a process that asks nobody, nothing is sent.
        let alone = try Countersign()
        try alone.enroll()
        try alone.writeSites("\(site.url) answer=ntlm approve=ask\n")
        let done = try alone.run(
            "exec", "--", "curl", "-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "\(site.url)/echo")
        #expect(done.output == "403", "\(done.said)")
    }

    // MARK: The audit

    @Test func theAuditHasEachUseAndIsVerified() throws {
        let folder = try TemporaryFolder("audit")
        let audit = folder.file("audit.jsonl")
        let site = try Site(flags: ["--audit", audit])
        for _ in 0..<3 { #expect(try site.proxy.get("\(site.url)/echo").status == 200) }
        let uses: [String]? = poll {
            let uses = TextFile.lines(audit).filter { $0.contains("\"kind\":\"use\"") }
            return uses.count == 3 ? uses : nil
        }
        let use = try #require(uses?.first)
        #expect(use.contains("\"site\":\"\(site.url)\"") && use.contains("\"credential\":\"enrollment\""))
        #expect(use.contains("\"program\":\"") && use.contains("/curl\"") && use.contains("\"result\":\"accepted\""))
        #expect(!use.contains("echo") && !use.contains(Countersign.password) && !use.contains(Countersign.user))
        site.proxy.process.send(SIGTERM)
        #expect(site.proxy.process.waitForExit() == 0)
        let verified = try site.user.run("audit", "verify", audit)
        #expect(verified.status == 0, "\(verified.said)")
        // One digit of a record is changed.
        let text = TextFile.text(audit)
        let place = try #require(text.range(of: "\"status\":200"))
        try folder.write("changed.jsonl", text.replacingCharacters(in: place, with: "\"status\":401"))
        let changed = try site.user.run("audit", "verify", folder.file("changed.jsonl"))
        #expect(changed.status == 1 && changed.said.contains("line 2, record 2"), "\(changed.said)")
    }

    @Test func theAuditSaysWhatTheSiteSaid() throws {
        let folder = try TemporaryFolder("audit")
        let audit = folder.file("audit.jsonl")
        let site = try Site(flags: ["--audit", audit])
        func uses(atLeast count: Int) throws -> [String] {
            let found: [String]? = poll {
                let uses = TextFile.lines(audit).filter { $0.contains("\"kind\":\"use\"") }
                return uses.count >= count ? uses : nil
            }
            return try #require(found)
        }
        // Both requests of one connection that NTLM has authenticated.
        _ = try site.proxy.get("\(site.url)/echo", flags: ["--next", "-x", site.proxy.url, "\(site.url)/echo"])
        #expect(try uses(atLeast: 2).allSatisfy { $0.contains("\"credential\":\"enrollment\"") })
        try site.user.enroll(password: Countersign.wrongPassword)
        let isRejected: Bool? = try poll { try site.proxy.get("\(site.url)/echo").status == 401 ? true : nil }
        #expect(isRejected == true)
        #expect(try uses(atLeast: 3).contains { $0.contains("\"result\":\"rejected\"") })
    }

    @Test func aRequiredAuditRefusesWhatItCannotRecord() throws {
        let user = try Countersign()
        let disk = try SmallDisk(user.folder, size: "256k")
        let site = try Site(flags: ["--audit", "\(disk.path)/audit.jsonl", "--audit-required"])
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let filled = try Command.run(
            try Tool.path("dd"), ["if=/dev/zero", "of=\(disk.path)/filler", "bs=4k"], in: user.folder)
        #expect(filled.status != 0, "the disk is full")
        // More uses than the space that is reserved for the audit.
        let url = "\(site.url)/echo"
        _ = try site.proxy.get(url, flags: Array(repeating: url, count: 150))
        let refused = try site.proxy.get(url)
        #expect(refused.said.contains("CONNECT tunnel failed, response 503"), "\(refused.said)")
        let isLogged: Bool? = try poll {
            let last = try site.proxy.logged(site: site.url).last { $0.status == 503 }
            return last?.reason?.contains("the audit cannot be written") == true ? true : nil
        }
        #expect(isLogged == true)
        // Other sites are not concerned.
        let port = try Origins.shared.nginx.httpPort
        #expect(try site.proxy.get("http://unlisted.test.localhost:\(port)/who").status == 200)
        unlink("\(disk.path)/filler")
        let served: Bool? = try poll { try site.proxy.get("\(site.url)/echo").status == 200 ? true : nil }
        #expect(served == true)
    }
}
