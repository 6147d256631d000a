// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// A running proxy whose provider begins to require a protection policy.
@Suite(.waiting) struct ComplianceTests {
    struct Bench {
        let service: ComplianceServer
        let provider: SignInProvider
        let origin: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy
        private let browser: String

        /// The access token is to be renewed as soon as the proxy runs, and then the provider requires the policy. Or
        /// the device `isWithheld` already, and the token does not expire.
        init(_ script: [String: any Sendable] = [:], isWithheld: Bool = false) throws {
            service = try ComplianceServer(script)
            provider = try SignInProvider(["token": ["t1", "t2", "t3"]])
            origin = try BearerOrigin(["tokens": ["t1": "valid", "t2": "valid", "t3": "valid"]])
            user = try Countersign()
            let compliance: [String: any Sendable] = ["url": service.url, "protapp": true]
            let profile = try user.folder.write(
                "profile.json",
                try provider.profile([
                    "name": "work", "sites": [origin.url], "compliance_service": compliance,
                ]))
            browser = try user.folder.write(
                program: "browser",
                "#!/bin/sh\necho \"$1\" >> \(user.folder.file("opened"))\n"
                    + "exec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            let done = try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": browser])
            guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
            try provider.change(["token": ["t2", "t3"], "policy": service.policy])
            let vault = try SealedVault(home: user.home).open { throw HarnessError("the vault has a passphrase") }
            try vault.update { contents in
                for var record in contents.signIns.values {
                    let now = Int64(Date().timeIntervalSince1970)
                    (record.obtained, record.expires) = (now - 3600, isWithheld ? 0 : now + 40)
                    try contents.updateSignIn(record)
                    guard isWithheld, var compliance = contents.compliance[record.name] else { continue }
                    (compliance.status, compliance.title, compliance.message) = (1, "No", "Not yet.")
                    compliance.checked = now - 3600
                    try contents.setCompliance(compliance)
                }
            }
            proxy = try user.serve()
        }

        func get(_ flags: String...) throws -> HTTPClient.Response { try proxy.get(origin.url + "/a/x", flags: flags) }

        func refused() throws -> HTTPClient.Response? {
            try poll {
                let seen = try get()
                return seen.status == 401 && seen.proxyStatus.contains("does not comply") ? seen : nil
            }
        }

        var opened: [String] { TextFile.lines(user.folder.file("opened")) }

        func run(_ words: String...) throws -> CommandResult {
            try user.run(words, environment: ["BROWSER": browser])
        }
    }

    @Test func theChallengeGoesBackWithOneReadableLineUntilTheDeviceComplies() throws {
        let bench = try Bench()
        let seen = try #require(try bench.refused())
        #expect(seen.values("WWW-Authenticate") == [#"Bearer realm="Test Bearer""#], "\(seen.said)")
        #expect(seen.proxyStatus.hasPrefix("countersign; details=\"not answered: "), "\(seen.said)")
        let page = "http://127.0.0.1:\(bench.service.port)/page"
        #expect(seen.proxyStatus.contains(page) && seen.proxyStatus.contains("countersign compliance remediate work"))
        #expect(seen.text.hasPrefix("countersign: not answered: the device does not comply"), "\(seen.text)")
        #expect(seen.text.contains(page) && seen.text.filter { $0 == "\n" }.count == 1 && seen.text.hasSuffix("\n"))
        #expect(seen.values("Content-Type") == ["text/plain; charset=utf-8"])

        // A browser gets the origin's own page.
        let browser = try bench.get("-A", "Mozilla/5.0 (X11; Linux x86_64)")
        #expect(browser.status == 401 && !browser.text.contains("does not comply"), "\(browser.said)")
        #expect(browser.proxyStatus.contains("does not comply"))
        let html = try bench.get("-H", "Accept: text/html,application/xhtml+xml")
        #expect(html.status == 401 && !html.text.contains("does not comply"), "\(html.said)")
        let count = bench.origin.log.requests.count
        let asked = try bench.get("-I")
        #expect(asked.status == 401 && asked.exit == 0 && bench.origin.log.requests.count == count + 1)
        #expect(bench.origin.log.requests.suffix(4).allSatisfy { $0.authorization == nil })

        // Nothing was thrown away, and no browser was opened.
        let contents = try SealedVault(home: bench.user.home).open { throw HarnessError("a passphrase") }.contents
        #expect(contents.signIns["work"]?.refreshToken != nil && contents.tokens["work"] != nil)
        #expect(contents.compliance["work"]?.status == 4)
        #expect(bench.opened.count == 1 && bench.service.requests.allSatisfy { $0.action == "remediate" })
        let status = try bench.user.run("status")
        #expect(status.status == 1 && status.output.contains("the device does not comply: Sign in"), "\(status.said)")
        let explained = try bench.user.run("explain", bench.origin.url)
        #expect(explained.said.contains("does not comply"), "\(explained.said)")

        let done = try bench.run("compliance", "remediate", "work")
        #expect(done.status == 0 && bench.opened.count == 2, "\(done.said)")
        let answered = try poll { () throws -> HTTPClient.Response? in
            let seen = try bench.get()
            return seen.status == 200 ? seen : nil
        }
        #expect(answered != nil && bench.origin.log.requests.last?.authorization == "Bearer t2")
    }

    /// After the command of a person, and after a silent question.
    @Test(.timeLimit(.minutes(15)), arguments: [false, true])
    func aServiceThatWantsARestartHasTheServerReplaced(isSilent: Bool) throws {
        let script = isSilent ? "compliant" : "page"
        let bench = try Bench(["script": script, "restart": true], isWithheld: isSilent)
        if !isSilent {
            _ = try bench.refused()
            let done = try bench.run("compliance", "remediate", "work")
            #expect(done.status == 0 && done.said.contains(" starts again\n"), "\(done.said)")
        }
        #expect(bench.proxy.process.waitForExit() == 0, "\(bench.proxy.process.errorOutput)")
        let successors = RestartTests.successors(bench.proxy.process)
        defer { for process in successors { kill(process, SIGTERM) } }
        #expect(successors.count == 1, "\(bench.proxy.process.errorOutput)")
        #expect(try bench.get().status == 200 && bench.origin.log.requests.last?.authorization == "Bearer t2")
    }

    /// No request and no renewal would ask about it.
    @Test func aWithheldTokenThatDoesNotExpireIsUsedAgainWhenTheDeviceComplies() throws {
        let bench = try Bench(["script": "compliant"], isWithheld: true)
        let answered = try poll { () throws -> Bool? in
            try bench.get().status == 200 && bench.origin.log.requests.last?.authorization == "Bearer t2" ? true : nil
        }
        #expect(answered == true, "\(bench.proxy.process.errorOutput)")
        #expect(bench.opened.count == 1 && bench.service.requests.map(\.silent) == [true])
        #expect(bench.proxy.process.errorOutput.contains("the device complies with the policy of \"work\" again"))
    }

    /// The renewal asks the service silently, and goes on if that helps.
    @Test func aPolicyThatCanBeAppliedSilentlyIsAppliedByTheRenewal() throws {
        let bench = try Bench(["script": "compliant"])
        let answered = try poll { () throws -> Bool? in
            try bench.get().status == 200 && bench.origin.log.requests.last?.authorization == "Bearer t2" ? true : nil
        }
        #expect(answered == true, "\(bench.origin.log.requests.map(\.authorization))")
        #expect(bench.opened.count == 1 && bench.service.requests.map(\.silent) == [true])
    }
}
