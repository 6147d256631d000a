// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// The sites that get the access token of a sign-in, and the replacement of sign-ins.
@Suite(.waiting) struct SignInNameTests {
    /// A site without `credential=` has the credential `enrollment`, which is never that of a sign-in.
    @Test func aListedSiteDoesNotGetTheTokenUnlessItNamesIt() throws {
        let bench = try SignInSandbox()
        try bench.sandbox.succeed("sites", "add", "https://own.corp.example")
        let result = try bench.enroll()
        #expect(result.status == 0 && !result.error.contains("own.corp.example"), "\(result.said)")
        #expect(try bench.status.compactMap { $0["name"] as? String } == ["127.0.0.1"])
        let credentials = try bench.sandbox.succeed("credential", "list", "--no-header")
        #expect(credentials.hasPrefix("127.0.0.1 ") && !credentials.contains("enrollment"), "\(credentials)")
        #expect(try bench.sandbox.succeed("unenroll").contains("\"127.0.0.1\" removed"))
    }

    /// The profile's own lines are shown as its sites.
    @Test func theSummaryShowsTheListedSitesThatNameTheSignIn() throws {
        let bench = try SignInSandbox(profile: ["name": "work", "sites": ["https://api.corp.example"]])
        for line in [
            "https://one.corp.example credential=work", "https://two.corp.example credential=work",
            "https://three.corp.example credential=work answer=basic", "https://four.corp.example credential=other",
        ] { #expect(try bench.sandbox.sh("countersign sites add \(line)").status == 0) }
        for _ in 1...2 {
            let result = try bench.enroll()
            let shown = result.error.split(separator: "\n").filter { $0.hasPrefix("  listed site ") }
            #expect(result.status == 0 && shown.count == 2, "\(result.said)")
            #expect(shown.first?.contains("https://one.corp.example, whose Bearer challenges") == true)
            #expect(shown.last?.contains("https://two.corp.example, whose Bearer challenges") == true)
        }
    }

    @Test(arguments: ["enrollment", "https_git.corp.example_443", "http_0123", ".x"])
    func aNameThatOtherSitesUseIsRefused(name: String) throws {
        let bench = try SignInSandbox()
        let chosen = try bench.enroll("--name", name)
        #expect(chosen.status == 64 && chosen.error.contains("--name must"), "\(chosen.said)")
        try bench.sandbox.folder.write("profile.json", try bench.provider.profile(["name": name]))
        let proposed = try bench.enroll()
        #expect(proposed.status == 1 && proposed.error.contains("\"name\" must"), "\(proposed.said)")
        #expect(try bench.provider.requests.isEmpty && bench.status.isEmpty)
    }

    /// Also for a command of another version, through the server's socket.
    @Test(arguments: ["enrollment", "https_git.corp.example_443"])
    func theVaultRefusesSuchNames(name: String) throws {
        let sandbox = try Sandbox()
        let operations = VaultOperations(home: Home(path: sandbox.home), vault: nil, now: { 0 })
        let new = NewSignIn(
            name: name, profile: "{}", source: "", issuer: "https://id.corp.example", subject: "", account: "",
            scope: "", sites: [], signedIn: 1, expires: 2, formerIssuer: nil)
        let tokens = SignInTokens(access: Secret(utf8: "a"), refresh: nil, identity: nil).encoded
        for (operation, secret) in [
            (CheckSignIn(name: name, sites: [], obtainsCertificate: false), nil), (StoreSignIn(new), tokens),
        ]
            as [(any VaultOperation, Secret?)]
        {
            let error = #expect(throws: CountersignError.self) { try operations.perform(operation, secret: secret) }
            #expect(error?.detail.contains("of the sign-in must not") == true, "\(String(describing: error))")
        }
    }

    // MARK: Another sign-in of the same name

    @Test func theSummaryShowsWhomItReplaces() throws {
        let bench = try SignInSandbox()
        let first = try bench.enroll()
        #expect(first.status == 0 && !first.error.contains("replaces"), "\(first.said)")
        let second = try bench.enroll()
        #expect(second.status == 0, "\(second.said)")
        #expect(second.error.contains(" replaces    jdoe@acme.example at \(bench.provider.issuer)\n"), "\(second.said)")
    }

    @Test func thePersonSeesWhomItReplacesBeforeTheQuestion() throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        let requests = bench.provider.requests
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json")],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.when("Sign in? [y/N] ", type: "n\n")
        #expect(terminal.waitForExit() == 1 && bench.provider.requests == requests, "\(terminal.screen)")
        #expect(terminal.screen.contains("jdoe@acme.example at \(bench.provider.issuer)"), "\(terminal.screen)")
    }

    /// Both providers have the same host, and so the same default name.
    @Test func anotherProvidersProfileTakesNoNameOver() throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        let other = try SignInProvider()
        try bench.sandbox.folder.write("profile.json", try other.profile())
        let refused = try bench.enroll()
        #expect(refused.status == 1 && refused.error.contains("is at \(bench.provider.issuer), and"), "\(refused.said)")
        #expect(refused.error.contains("`countersign unenroll 127.0.0.1`") && other.requests.isEmpty)
        #expect(try bench.status.map { $0["issuer"] as? String } == [bench.provider.issuer])
        let beside = try bench.enroll("--name", "other")
        #expect(beside.status == 0, "\(beside.said)")
        let chosen = try bench.enroll("--name", "127.0.0.1")
        #expect(chosen.status == 0 && chosen.error.contains(" at \(bench.provider.issuer)\n"), "\(chosen.said)")
        #expect(try bench.status.map { $0["issuer"] as? String } == [other.issuer, other.issuer])
        let several = try bench.sandbox.countersign("unenroll")
        #expect(several.status == 1 && several.error.contains("several sign-ins"), "\(several.said)")
    }
}
