// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSitePolicy

@Suite struct ClientRuleTests {
    private static let id = String(repeating: "0123456789abcdef", count: 4)

    /// A build server's job, of which everything is known.
    static let build: ClientFacts = {
        var facts = ClientFacts(uid: 1001)
        facts.userName = "build"
        facts.groups = [1001, 27]
        facts.pid = 4711
        facts.executable = .init(path: "/usr/bin/git", file: .init(device: 1, inode: 10))
        facts.controlGroup = ControlGroup(path: "/system.slice/ci.service/job")
        facts.containerNames = []
        facts.token = .named("ci")
        facts.socket = .named("agents")
        facts.names.users = ["build": 1001, "backup": 1002]
        facts.names.groups = ["sudo": 27, "staff": 50, "build": 1001]
        facts.names.executables = [
            "/usr/bin/git": .init(device: 1, inode: 10), "/usr/local/bin/git": .init(device: 1, inode: 10),
            "/usr/bin/curl": .init(device: 1, inode: 11), "/opt/git": .init(device: 2, inode: 10),
        ]
        return facts
    }()

    static let contained: ClientFacts = {
        var facts = build
        facts.controlGroup = ControlGroup(path: "/user.slice/user-1001.slice/user@1001.service/libpod-\(id).scope")
        facts.containerNames = ["web"]
        facts.token = ClientFacts.Name.none
        facts.socket = ClientFacts.Name.none
        return facts
    }()

    /// A rule, and whether it permits ``build`` and ``contained``.
    static let decisions: [(rule: String, build: Bool, contained: Bool)] = [
        ("user:build", true, true), ("user:1001", true, true), ("user:backup", false, false),
        ("user:1002", false, false), ("user:nobody", false, false), ("user:4294967295", false, false),
        ("!user:build", false, false), ("!user:backup", true, true), ("!user:1002", true, true),
        // A name that the system does not know excludes everybody.
        ("!user:nobody", false, false), ("user:build,!user:nobody", false, false),
        ("group:sudo", true, true), ("group:27", true, true), ("group:build", true, true),
        ("group:staff", false, false),
        ("group:wheel", false, false), ("!group:staff", true, true), ("!group:sudo", false, false),
        ("!group:wheel", false, false),
        ("unit:ci.service", true, false), ("unit:job.service", false, false), ("!unit:ci.service", false, true),
        ("unit:user@1001.service", false, true), ("user-unit:ci.service", false, false),
        ("user-unit:libpod-\(id).scope", false, true), ("!user-unit:x.service", true, true),
        ("cgroup:/system.slice", true, false), ("cgroup:/system.slice/ci.service", true, false),
        ("cgroup:/system.slice/ci.service/job", true, false), ("cgroup:/system.slice/ci.service/job/x", false, false),
        ("cgroup:/system.slice/ci", false, false), ("!cgroup:/system.slice", false, true),
        ("container:web", false, true), ("container:db", false, false), ("!container:web", true, false),
        ("!container:db", true, true), ("container:0123456789ab", false, true),
        ("container:0123456789a", false, false), ("container:\(id)", false, true),
        ("container:1123456789ab", false, false),
        ("exe:/usr/bin/git", true, true), ("exe:/usr/local/bin/git", true, true), ("exe:/usr/bin/curl", false, false),
        ("exe:/opt/git", false, false), ("exe:/nothing/here", false, false), ("!exe:/usr/bin/git", false, false),
        ("!exe:/usr/bin/curl", true, true), ("!exe:/opt/git", true, true), ("!exe:/nothing/here", false, false),
        ("token:ci", true, false), ("token:other", false, false), ("!token:ci", false, true),
        ("!token:other", true, true),
        ("socket:agents", true, false), ("socket:other", false, false), ("!socket:agents", false, true),
        ("!socket:other", true, true),
        // Several words.
        ("user:backup,exe:/usr/bin/git", true, true), ("user:backup,token:ci", true, false),
        ("user:backup,unit:ci.service,container:web", true, true), ("user:backup,exe:/usr/bin/curl", false, false),
        ("user:build,!unit:ci.service", false, true), ("!unit:ci.service,user:build", false, true),
        ("user:backup,!unit:other.service", false, false), ("!user:backup,!token:ci", false, true),
        ("!user:build,!token:ci", false, false), ("exe:/usr/bin/git,!cgroup:/system.slice,!group:staff", false, true),
        ("exe:/nothing/here,user:build", true, true),
    ]

    @Test(arguments: decisions)
    func whatIsTrueOfAClientDecides(rule: String, build: Bool, contained: Bool) throws {
        let rule = try ClientRule(parsing: rule)
        #expect(rule.permits(Self.build) == build)
        #expect(rule.permits(Self.contained) == contained)
    }

    /// No rule permits a client of which nothing is known, nor one of which the fact it asks for is unknown.
    @Test(arguments: decisions.map(\.rule))
    func whatIsUnknownIsNotPermitted(rule: String) throws {
        #expect(try !ClientRule(parsing: rule).permits(ClientFacts()))
    }

    /// Without the one fact that a word asks for, neither the word nor its exclusion permits.
    @Test(arguments: ClientRule.Word.Kind.allCases)
    func theFactOfEachKindIsNecessary(kind: ClientRule.Word.Kind) throws {
        var facts = Self.contained
        facts.token = .named("ci")
        facts.socket = .named("agents")
        let (isTrue, isFalse): (String, String)
        var without = facts
        switch kind {
        case .user:
            (isTrue, isFalse) = ("user:1001", "user:1002")
            without.uid = nil
        case .group:
            (isTrue, isFalse) = ("group:27", "group:50")
            without.groups = nil
        case .unit:
            (isTrue, isFalse) = ("unit:user@1001.service", "unit:x.service")
            without.controlGroup = nil
        case .userUnit:
            (isTrue, isFalse) = ("user-unit:libpod-\(Self.id).scope", "user-unit:x.service")
            without.controlGroup = nil
        case .cgroup:
            (isTrue, isFalse) = ("cgroup:/user.slice", "cgroup:/system.slice")
            without.controlGroup = nil
        case .container:
            (isTrue, isFalse) = ("container:web", "container:db")
            without.containerNames = nil
        case .exe:
            (isTrue, isFalse) = ("exe:/usr/bin/git", "exe:/usr/bin/curl")
            without.executable = nil
        case .token:
            (isTrue, isFalse) = ("token:ci", "token:x")
            without.token = nil
        case .socket:
            (isTrue, isFalse) = ("socket:agents", "socket:x")
            without.socket = nil
        }
        let decisions = try [isTrue, "!" + isTrue, isFalse, "!" + isFalse].map { try ClientRule(parsing: $0) }
        #expect(decisions.map { $0.permits(facts) } == [true, false, false, true])
        #expect(decisions.map { $0.permits(without) } == [false, false, false, false])
    }

    // MARK: Text

    @Test(
        arguments: decisions.map(\.rule) + [
            "exe:/opt/My%20App/a%2Cb%25%23", "cgroup:/a%C3%A4", "unit:a\\x2db@1:2.scope",
        ])
    func aRuleIsWrittenAsItWasRead(_ text: String) throws {
        let rule = try ClientRule(parsing: text)
        #expect(try ClientRule(parsing: rule.description) == rule)
        if !text.contains("!") { #expect(rule.description == text) }
    }

    @Test func escapesStandForBytes() throws {
        #expect(
            try ClientRule(parsing: "exe:/opt/My%20App/%c3%A4,cgroup:/a").permitted
                == [.executable("/opt/My App/ä"), .controlGroup("/a")])
    }

    private static let badPath = "is not an absolute path without empty components, . and .."

    static let faults: [(text: String, offset: Int, message: String, hint: String)] = [
        ("", 0, "a client is missing", "write for=user:build"), (",", 0, "a client is missing", "for="),
        ("user:a,", 7, "a client is missing", "for="), ("!", 0, "a client is missing", "for="),
        ("user:a,,user:b", 7, "a client is missing", "for="),
        ("build", 0, #""build" does not say what it names"#, "write one of user: group: unit: user-unit: cgroup:"),
        ("/usr/bin/git", 0, #""/usr/bin/git" does not say what it names"#, "write exe:/usr/bin/git"),
        ("a.service", 0, #""a.service" does not say what it names"#, "write unit:a.service"),
        ("user", 0, #""user" does not say what it names"#, "write user:build"),
        ("user:a,!!b", 7, #""!b" does not say what it names"#, "one !"),
        ("users:a", 0, #"unknown kind of client "users""#, #"did you mean "user"?"#),
        ("User:a", 0, #"unknown kind of client "User""#, #"did you mean "user"?"#),
        ("pid:1", 0, #"unknown kind of client "pid""#, "known words: user, group, unit, user-unit, cgroup"),
        (":a", 0, #"unknown kind of client """#, "known words"),
        ("user:", 0, "user: names nothing", "write user:build"),
        ("user:a,!token:", 7, "token: names nothing", "write token:NAME"),
        ("user:a,user:a", 7, #"the client "user:a" is given twice"#, "keep one"),
        ("user:ä,!user:ä", 7, #"the client "user:\u{E4}" is given twice"#, "keep one"),
        ("user:a:b", 0, #""a:b" cannot be the name of a user"#, "or the number"),
        ("group:a/b", 0, #""a/b" cannot be the name of a group"#, "write group:staff"),
        ("user:-a", 0, #""-a" cannot be the name of a user"#, "user:build"),
        ("user:4294967296", 0, #""4294967296" cannot be the name of a user"#, "user:build"),
        ("unit:backup", 0, #""backup" is not a unit that has processes"#, "write unit:backup.service"),
        ("unit:.service", 0, #"".service" is not a unit that has processes"#, "write unit:"),
        ("unit:a.slice", 0, #""a.slice" is not a unit that has processes"#, "write unit:"),
        ("unit:a@.service", 0, #""a@.service" is not a unit that has processes"#, "write unit:"),
        ("user-unit:a/b.service", 0, #""a/b.service" is not a unit that has processes"#, "write user-unit:"),
        ("exe:git", 0, #""git" \#(badPath)"#, "write exe:/usr/bin/curl"), ("exe:/", 0, #""/" \#(badPath)"#, "exe:/"),
        ("exe:/usr//git", 0, #""/usr//git" \#(badPath)"#, "exe:/"),
        ("exe:/usr/../git", 0, #""/usr/../git" \#(badPath)"#, "exe:/"),
        ("cgroup:/", 0, #""/" \#(badPath)"#, "cgroup:/"), ("cgroup:/a/", 0, #""/a/" \#(badPath)"#, "cgroup:/"),
        ("exe:/a%", 0, #""/a%" has a % that is not followed by two hexadecimal digits"#, "%25"),
        ("exe:/a%2", 0, #""/a%2" has a % that is not followed by two hexadecimal digits"#, "%25"),
        ("exe:/a%zz", 0, #""/a%zz" has a % that is not followed by two hexadecimal digits"#, "%25"),
        ("exe:/a%00", 0, #""/a%00" has a % that is not followed by two hexadecimal digits"#, "%25"),
        ("token:a:b", 0, #""a:b" cannot be the name of a token"#, "1 to 255"),
        ("socket:.a", 0, #"".a" cannot be the name of a socket"#, "1 to 255"),
        ("container:a_b!", 0, #""a_b!" cannot be the name of a container"#, "1 to 255"),
    ]

    @Test(arguments: faults)
    func eachFaultSaysWhatToWrite(text: String, offset: Int, message: String, hint: String) {
        do {
            Issue.record("\(text) is read as \(try ClientRule(parsing: text))")
        } catch {
            #expect(error.offset == offset && error.message == message)
            #expect(error.hint.contains(hint), "\(error.hint)")
        }
    }

    // MARK: Facts

    @Test(
        arguments: [
            ("/system.slice/ci.service", "ci.service", nil, nil), ("/init.scope", "init.scope", nil, nil),
            ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", nil, nil),
            ("/user.slice/user-1000.slice/session-2.scope", "session-2.scope", nil, nil),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.service", "user@1000.service",
                "app-editor.service", nil
            ),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service", "init.scope", nil),
            ("/", nil, nil, nil), ("/job", nil, nil, nil), ("/a.slice", nil, nil, nil),
            ("/a.slice/job/x.service", nil, nil, nil),
            ("/system.slice/_cpu.service", "cpu.service", nil, nil),
            // A group below that of a unit does not speak for the manager.
            ("/system.slice/ci.service/backup.service", "ci.service", nil, nil),
            ("/system.slice/ci.service/user@1000.service/x.service", "ci.service", nil, nil),
            ("/system.slice/docker-\(id).scope", "docker-\(id).scope", nil, id), ("/docker/\(id)", nil, nil, id),
            ("/docker/\(id)/docker/\(String(id.reversed()))", nil, nil, id),
            ("/machine.slice/libpod-\(id).scope/container", "libpod-\(id).scope", nil, id),
            ("/machine.slice/libpod-conmon-\(id).scope", "libpod-conmon-\(id).scope", nil, nil),
            ("/libpod_parent/libpod-\(id)", nil, nil, id),
            ("/docker/\(id.dropLast())", nil, nil, nil), ("/\(id)", nil, nil, nil),
            ("/docker-\(id.uppercased()).scope", "docker-\(id.uppercased()).scope", nil, nil),
        ] as [(String, String?, String?, String?)])
    func theGroupsPathNamesUnitAndContainer(path: String, unit: String?, userUnit: String?, container: String?) {
        let group = ControlGroup(path: path)
        #expect(group?.unit == unit && group?.userUnit == userUnit && group?.containerID == container)
    }

    @Test(
        arguments: [
            ("0::/a\n", "/a"), ("9:name=systemd:/x\n0::/a b\n", "/a b"), ("0::/\n", "/"), ("9:name=systemd:/x\n", nil),
            ("", nil), ("0::/../x\n", nil), ("0::/a (deleted)\n", nil), ("0::\n", nil), ("10::/a\n", nil),
        ] as [(String, String?)])
    func onlyTheSecondVersionsGroupIsRead(contents: String, path: String?) {
        #expect(ControlGroup(contents: contents)?.path == path)
    }

    @Test func theMostParticularWordNamesAClient() {
        var facts = Self.contained
        #expect(facts.word?.description == "container:0123456789ab")
        facts.controlGroup = nil
        #expect(facts.word?.description == "exe:/usr/bin/git")
        facts.executable = .init(path: "/opt/a b,c", file: .init(device: 0, inode: 0))
        #expect(facts.word?.description == "exe:/opt/a%20b%2Cc")
        facts.executable = .init(path: "/usr/bin/git (deleted)", file: .init(device: 0, inode: 0))
        #expect(facts.word?.description == "user:build")
        facts.userName = nil
        #expect(facts.word?.description == "user:1001")
        #expect(ClientFacts().word == nil)
    }
}
