// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses
@testable import CountersignSitePolicy

/// Remarks about lines that no request and no client gets to.
@Suite struct ShadowedLinesTests {
    private static func list(_ lines: [String]) throws -> SiteList {
        try SiteList(files: [(name: "t.sites", text: lines.joined(separator: "\n"))])
    }

    private static func shadowed(_ lines: [String]) throws -> [String] {
        try list(lines.map { "a.example \($0)" }).remarks(credentials: nil, identities: nil).map(\.message)
    }

    private static func comesFirst(_ line: Int, _ other: Int) -> String {
        "t.sites:\(line): no request gets to this line: t.sites:\(other) comes first"
    }

    static let cases: [(lines: [String], shadowed: [(Int, by: Int)])] = [
        // The same requests: the first line counts, also if it is for more clients.
        (["credential=x", "for=exe:/usr/bin/git"], [(2, by: 1)]),
        (["for=exe:/usr/bin/git", "credential=x"], []),
        (["methods=GET", "for=user:a methods=GET"], [(2, by: 1)]),
        (["for=user:a,user:b", "for=user:b"], [(2, by: 1)]),
        (["for=user:a,user:b", "for=user:b,user:c"], []),
        (["for=user:a,!token:x", "for=user:a"], []),
        (["for=user:a", "for=user:a,!token:x"], [(2, by: 1)]),
        (["for=!token:x", "for=!token:x,!token:y"], []),
        // One that is for fewer methods comes first.
        (["methods=GET,HEAD", "methods=HEAD,GET,PUT", "methods=PUT"], [(2, by: 1)]),
        (["methods=GET,HEAD", "methods=HEAD,GET,PUT"], []),
        (["", "methods=GET"], []),
        // `/x/**` has fewer stars than `/x/*/**`.
        (["paths=/x/**", "paths=/x/*/**"], [(2, by: 1)]),
        (["paths=/x/**", "paths=/x/*/y"], []),
        (["paths=/x/**,!/x/y/**", "paths=/x/*/**"], []),
        (["paths=/x/**,!/x/y/**", "paths=/x/*/**,!/x/y/**"], [(2, by: 1)]),
        (["paths=/x/**", "paths=/x/*/**,/y"], []),
        (["paths=/x/** case=ignore", "paths=/X/*/** case=ignore"], [(2, by: 1)]),
        (["paths=/x/** case=ignore", "paths=/x/*/**"], []),
        (["paths=/a,/b methods=GET", "paths=/b for=token:ci methods=GET"], [(2, by: 1)]),
    ]

    @Test(arguments: cases.indices) func aLineThatNoRequestGetsToIsRemarkedOn(index: Int) throws {
        let (lines, shadowed) = Self.cases[index]
        #expect(try Self.shadowed(lines) == shadowed.map { Self.comesFirst($0.0, $0.by) }, "\(lines)")
    }

    /// What the remark says is true: no request of a shadowed line is answered by it, for no client.
    @Test(arguments: cases.indices) func theRemarkIsRight(index: Int) throws {
        let (lines, shadowed) = Self.cases[index]
        let list = try Self.list(lines.map { "a.example \($0)" })
        var names = ClientFacts.Names()
        (names.users, names.executables["/usr/bin/git"]) = (["a": 1, "b": 2, "c": 3], .init(device: 1, inode: 1))
        let origin = try Origin(url: "https://a.example")
        var reached: Set<Int> = []
        for words in [
            "user:a", "user:b", "user:c", "exe:/usr/bin/git", "token:x,user:a", "token:y", "token:ci", "user:b,token:x",
        ] {
            let facts = try ClientFacts(try ClientRule(parsing: words).permitted, names: names)
            let client = SiteList.Client.standing(ClientStanding(facts, among: list.clientRules))
            for method in ["GET", "HEAD", "PUT", "DELETE"] {
                for path in ["/", "/a", "/b", "/x", "/X/y", "/x/y", "/x/z/y", "/x/y/z", "/y"] {
                    let request = SiteRequest(method: method, target: ArraySlice(path.utf8))
                    guard case .answer(let rule) = list.verdict(for: origin, request: request, client: client) else {
                        continue
                    }
                    reached.insert(rule.line)
                }
            }
        }
        #expect(reached.isDisjoint(with: shadowed.map(\.0)) && reached.contains(1), "\(lines)")
    }

    @Test(arguments: [
        (["a.example for=cgroup:/a/b,!cgroup:/a"], "for= permits no client: !cgroup:/a excludes cgroup:/a/b"),
        (
            ["a.example for=container:0123456789abcdef,!container:0123456789ab"],
            "for= permits no client: !container:0123456789ab excludes container:0123456789abcdef"
        ),
        (["a.example for=cgroup:/a/b,user:x,!cgroup:/a"], nil), (["a.example for=cgroup:/ab,!cgroup:/a"], nil),
        (
            ["a.example for=token:ci credential=c", "credential:c for=token:web"],
            "no client may use the line and its credential: t.sites:2 permits others"
        ),
        (
            ["a.example for=token:ci credential=c", "credential:c for=!token:ci"],
            "no client may use the line and its credential: t.sites:2 permits others"
        ),
        (
            ["a.example for=!user:x credential=c", "credential:c for=user:x"],
            "no client may use the line and its credential: t.sites:2 permits others"
        ),
        (["a.example for=token:ci credential=c", "credential:c for=user:x"], nil),
        // Two names may be those of one user.
        (["a.example for=user:y credential=c", "credential:c for=user:x"], nil),
        (["a.example for=token:ci,token:web credential=c", "credential:c for=token:web"], nil),
        (["a.example credential=c", "credential:c for=cgroup:/a/b,!cgroup:/a"], nil),
    ]) func clientsThatAreExcludedAreRemarkedOn(lines: [String], reason: String?) throws {
        let remarks = try Self.list(lines).remarks(credentials: nil, identities: nil).map(\.message)
            .filter { $0.hasPrefix("t.sites:1") }
        #expect(remarks == [reason.map { "t.sites:1: \($0)" }].compactMap(\.self))
    }

    @Test func aScriptIsNoClient() throws {
        let list = try Self.list([
            "a.example for=exe:/home/a/x.py,exe:/usr/bin/git", "credential:c for=!exe:/home/a/x.py", "b.example",
        ])
        var asked: [String] = []
        let remarks = list.scriptRemarks { path in
            asked.append(path)
            return path.hasSuffix(".py")
        }
        let text = "exe:/home/a/x.py is a script: the kernel runs its interpreter, and no client is this file"
        #expect(remarks.map(\.message) == ["t.sites:1: \(text)", "t.sites:2: \(text)"])
        #expect(asked == ["/home/a/x.py", "/usr/bin/git"])
        #expect(list.scriptRemarks(at: "t.sites:2") { _ in true }.map(\.message) == ["t.sites:2: \(text)"])
    }

    @Test func aLineThatIsAddedIsComparedWithTheOthers() throws {
        let list = try Self.list(["a.example", "b.example", "a.example for=token:ci", "b.example for=token:ci"])
        let remarks = list.remarks(on: list.rules[2], credentials: nil, identities: nil)
        #expect(remarks.map(\.message) == [Self.comesFirst(3, 1)])
    }

    /// A list is read again whenever one of its files changes.
    @Test func manyLinesAreComparedQuickly() throws {
        let clients = (0..<5_000).map { "a.example for=token:t\($0) credential=c\($0)" }
        let paths = (0..<5_000).map { "b.example paths=/api/*/p\($0)" }
        let list = try Self.list(clients + paths)
        let elapsed = ContinuousClock().measure {
            #expect(list.remarks(credentials: nil, identities: nil).isEmpty)
        }
        #expect(elapsed < .seconds(20))
    }
}
