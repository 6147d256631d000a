// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import Testing

@testable import CountersignSitePolicy

/// Sites whose lines are for different clients, and lines about credentials.
@Suite struct DividedSiteTests {
    private static func list(_ lines: String...) throws -> SiteList {
        try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
    }

    private static func problems(_ lines: String...) -> [String] {
        do {
            _ = try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
            return []
        } catch {
            return error.problems.map { "\($0.line):\($0.column): \($0.message)" }
        }
    }

    /// The client of which these words are true.
    private static func client(_ words: String?, in list: SiteList) throws -> SiteList.Client {
        guard let words else { return .unknown }
        var names = ClientFacts.Names()
        names.users = ["build": 1001, "backup": 1002]
        names.executables = [
            "/usr/bin/git": .init(device: 1, inode: 10), "/usr/bin/curl": .init(device: 1, inode: 11),
        ]
        let facts = try ClientFacts(try ClientRule(parsing: words).permitted, names: names)
        return .standing(ClientStanding(facts, among: list.clientRules))
    }

    /// The number of the line for a request, or `forwarded` or `refused`.
    private static func line(
        _ method: String, _ path: String, for words: String?, in list: SiteList
    ) throws -> String {
        let request = SiteRequest(method: method, target: ArraySlice(path.utf8))
        switch list.verdict(
            for: try Origin(url: "https://a.example"), request: request, client: try client(words, in: list))
        {
        case .answer(let rule): return "\(rule.line)"
        case .tunnel: return "forwarded"
        case .refuse: return "refused"
        }
    }

    @Test func eachProgramGetsItsOwnLine() throws {
        let list = try Self.list(
            "a.example for=exe:/usr/bin/git credential=deploy", "a.example for=unit:backup.service credential=backup",
            "a.example for=token:ci methods=GET credential=ci", "a.example for=token:ci paths=/x/** credential=x")
        #expect(try Self.line("GET", "/", for: "exe:/usr/bin/git", in: list) == "1")
        #expect(try Self.line("POST", "/", for: "unit:backup.service", in: list) == "2")
        #expect(try Self.line("GET", "/", for: "token:ci", in: list) == "3")
        #expect(try Self.line("POST", "/x/y", for: "token:ci", in: list) == "4")
        #expect(try Self.line("POST", "/", for: "token:ci", in: list) == "forwarded")
        #expect(try Self.line("GET", "/", for: "exe:/usr/bin/curl", in: list) == "forwarded")
        #expect(try Self.line("GET", "/", for: nil, in: list) == "forwarded")
        // The most specific line counts, and then the first.
        #expect(try Self.line("GET", "/x/y", for: "token:ci,exe:/usr/bin/git", in: list) == "4")
        #expect(try Self.line("POST", "/", for: "token:ci,exe:/usr/bin/git", in: list) == "1")
    }

    @Test func aLineForAllIsForTheOthers() throws {
        let list = try Self.list("a.example for=user:build credential=b", "a.example credential=all")
        #expect(try Self.line("GET", "/", for: "user:build", in: list) == "1")
        #expect(try Self.line("GET", "/", for: "user:backup", in: list) == "2")
        #expect(try Self.line("GET", "/", for: nil, in: list) == "2")
    }

    @Test func connectionsOfDifferentLinesAreTold() throws {
        let list = try Self.list("a.example for=user:build", "a.example for=user:backup", "b.example methods=GET", "c")
        #expect(list.rules.map(\.ordinal) == [1, 2, 1, 0])
    }

    @Test func denyInOneLineIsForTheWholeSite() throws {
        let list = try Self.list("a.example for=user:build", "a.example for=token:ci deny=yes")
        #expect(try Self.line("GET", "/", for: "user:build", in: list) == "1")
        #expect(try Self.line("GET", "/", for: "user:backup", in: list) == "refused")
        #expect(try Self.line("GET", "/", for: nil, in: list) == "refused")
    }

    @Test func lineAndCredentialMustBothAgree() throws {
        let list = try Self.list(
            "credential:deploy for=exe:/usr/bin/git", "a.example for=user:build credential=deploy",
            "b.example credential=deploy")
        #expect(list.credentialClients.map(\.location) == ["t.sites:1"])
        #expect(try Self.line("GET", "/", for: "user:build,exe:/usr/bin/git", in: list) == "2")
        #expect(try Self.line("GET", "/", for: "user:build,exe:/usr/bin/curl", in: list) == "forwarded")
        #expect(try Self.line("GET", "/", for: "user:backup,exe:/usr/bin/git", in: list) == "forwarded")
        let other = try Origin(url: "https://b.example")
        let curl = try Self.client("exe:/usr/bin/curl", in: list)
        guard case .tunnel(let refusal) = list.verdict(for: other, client: curl) else {
            Issue.record("answered")
            return
        }
        // The reason names the line about the credential, what would permit the client, and nobody else's program.
        #expect(refusal.bareText == "t.sites:1 is for other clients")
        #expect(refusal.text.hasSuffix("; add `exe:/usr/bin/curl` to for= in t.sites:1"))
    }

    @Test func theCredentialOfALineWithoutOneCountsToo() throws {
        let list = try Self.list("a.example", "credential:enrollment for=user:build")
        #expect(try Self.line("GET", "/", for: "user:build", in: list) == "1")
        #expect(try Self.line("GET", "/", for: "user:backup", in: list) == "forwarded")
        #expect(list.dryRun.rules[0].credentialClients != nil)
        #expect(list.observing([try Origin(url: "https://z.example")]).rules[0].credentialClients != nil)
    }

    @Test(arguments: [
        ("credential: for=user:a", "1:12: this cannot be the name of a credential"),
        ("credential:a/b for=user:a", "1:12: this cannot be the name of a credential"),
        ("credential:a", "1:1: the line does not say which clients may use the credential"),
        ("credential:a for=", "1:18: a client is missing"),
        ("credential:a answer=basic", "1:14: a line about a credential has no \"answer=basic\""),
        ("credential:a for=user:b for=user:c", "1:25: the option \"for\" is given twice"),
        ("credential:a for=exe:curl", "1:18: \"curl\" is not an absolute path without empty components, . and .."),
    ])
    func faultsOfLinesAboutCredentialsNameTheirPlace(line: String, problem: String) {
        #expect(Self.problems(line) == [problem])
    }

    @Test func twoLinesAboutOneCredentialAreAFault() {
        #expect(
            Self.problems("credential:a for=user:a", "credential:a for=user:b")
                == ["2:1: the clients of credential \"a\" are already given at t.sites:1"])
        #expect(
            Self.problems("a.example for=user:a", "a.example for=user:a")
                == ["2:1: \"https://a.example\" is already listed at t.sites:1"])
    }

    @Test func aLineAboutACredentialThatNobodySendsIsRemarkedOn() throws {
        let list = try Self.list("credential:a for=exe:/bin/sh", "credential:b for=user:x", "a.example credential=b")
        #expect(
            list.remarks(credentials: ["b"], identities: nil).map(\.message) == [
                "t.sites:1: exe:/bin/sh is an interpreter: every script that it runs is permitted",
                "t.sites:1: there is no credential \"a\"", "t.sites:1: no site gets credential \"a\"",
            ])
    }

    @Test func aLineAboutACredentialCanBeRemoved() throws {
        let text = "a.example\ncredential:a for=user:x\n"
        #expect(SiteListText.remove(try .init(parsing: "credential:a"), from: text) == "a.example\n")
        #expect(SiteListText.remove(try .init(parsing: "credential:b"), from: text) == nil)
    }

    @Test(arguments: [
        ("user:nobody-here", "is no user of this machine"), ("exe:/usr/bin/none", "is no file"),
        ("exe:/usr/bin/git,exe:/usr/bin/curl", "is a second program"), ("user:build,user:backup", "is a second user"),
        ("unit:a.service,unit:b.service", "is a second control group"), ("token:a,token:b", "is a second token"),
    ])
    func noClientIsLikeThat(words: String, reason: String) throws {
        let list = try Self.list("a.example")
        let error = try #require(throws: ClientFacts.ImpossibleWord.self) { try Self.client(words, in: list) }
        #expect(error.reason == reason)
    }

    /// Each word that describes a client is true of it.
    @Test(arguments: [
        "user:build", "user:77", "group:27", "unit:backup.service", "user-unit:editor.service",
        "cgroup:/system.slice", "container:web", "container:0123456789abcdef", "exe:/usr/bin/git", "token:ci",
        "socket:agents",
    ])
    func aDescribedClientIsWhatTheWordsSay(_ word: String) throws {
        let list = try Self.list("a.example for=\(word)", "b.example for=!\(word)")
        let client = try Self.client(word, in: list)
        #expect(list.verdict(for: try Origin(url: "https://a.example"), client: client) == .answer(list.rules[0]))
        guard case .tunnel = list.verdict(for: try Origin(url: "https://b.example"), client: client) else {
            Issue.record("not excluded")
            return
        }
    }
}
