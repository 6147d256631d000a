// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Glibc
import Testing

/// The number of times that a stale password is sent, and events that do not hold back a good one.
@Suite(.waiting) struct LockoutTests {
    private static let closing = "/fault/close-on-authenticate/x"
    private static let hanging = "/fault/hang-on-authenticate/x"

    // MARK: Silence

    @Test func anAcceptedSiteThatClosesConnectionsReceivesAPasswordTwice() throws {
        let test = try Lockout(sites: 1)
        for _ in 1...6 { _ = try test.fetch(Self.closing) }
        #expect(test.sent(Self.closing) == 2)
        #expect(try test.fetch(Self.closing) == "401")
        #expect(try test.user.succeed("credential", "list").contains("no answer at https://lockout.test.localhost:"))
    }

    /// The client gives up before the site has answered, as it does if the site delays the 401 to a wrong password.
    @Test(arguments: [true, false])
    func aClientThatGivesUpSendsAPasswordTwice(isAccepted: Bool) throws {
        let test = try Lockout(sites: 1, accepted: isAccepted)
        var statuses: [String] = []
        while statuses.last != "401", statuses.count < 6 {
            statuses.append(try test.fetch(Self.hanging, seconds: 4))
        }
        #expect(statuses.last == "401", "\(statuses)")
        #expect(test.sent(Self.hanging) == 2)
        let listed = try test.user.succeed("credential", "list")
        #expect(listed.contains("no answer at ") && listed.contains(", next attempt after "), "\(listed)")
        let proxy = try test.user.serve()
        let seen = try proxy.get(test.url() + Self.hanging)
        #expect(seen.proxyStatus.contains("was sent here without a response, and is not sent for "), "\(seen.said)")
    }

    @Test func aCommandThatIsKilledSendsAPasswordTwice() throws {
        let test = try Lockout(sites: 1)
        try test.letTimePass()
        for number in 1...2 {
            let command = try ChildProcess(
                try Countersign.executable,
                ["exec", "--home", test.user.home] + Lockout.command(test.url() + Self.hanging)[1...],
                environment: ["HOME": test.user.folder.path], capture: test.user.folder.file("killed-\(number)"))
            let hasSent = poll { test.sent(Self.hanging) == number ? true : nil }
            try #require(hasSent == true)
            command.send(SIGKILL)
            try #require(command.waitForExit() != nil)
        }
        #expect(try test.fetch(Self.hanging, seconds: 10) == "401")
        #expect(test.sent(Self.hanging) == 2)
    }

    @Test func aPageThatCrashesDoesNotBlockTheOthers() throws {
        let test = try Lockout(sites: 1)
        for _ in 1...3 {
            _ = try test.fetch(Self.closing)
            #expect(try test.fetch("/echo") == "200")
        }
        #expect(try test.fetch("/echo?new") == "200")
        #expect(!(try test.user.succeed("credential", "list")).contains("no answer"))
    }

    /// A browser cancels requests whenever its user moves on.
    @Test func aClientThatGivesUpDoesNotBlockAServersPages() throws {
        let test = try Lockout(sites: 1)
        let proxy = try test.user.serve()
        #expect(try proxy.get("\(test.url())/echo").status == 200)
        let many = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-Z", "--http1.1", "--parallel-immediate", "--parallel-max", "8", "-m", "8", "-x",
                proxy.url, "--cacert", proxy.anchor, "-o", "/dev/null", "\(test.url())\(Self.hanging)?[1-8]",
            ], in: test.user.folder)
        #expect(many.status != 0)
        #expect(test.sent(Self.hanging) > 0)
        #expect(try proxy.get("\(test.url())/echo?next").status == 200)
    }

    // MARK: Several sites

    @Test func aStalePasswordIsSentAtMostTwiceToFiveSitesThatAcceptedIt() throws {
        let test = try Lockout(sites: 5)
        for origin in test.origins { try origin.change(password: "another") }
        let before = test.origins.indices.map { test.sent(nil, $0) }
        for round in 1...2 {
            for number in test.origins.indices {
                #expect(try test.fetch("/new/\(round)", number) == "401")
            }
        }
        let after = test.origins.indices.map { test.sent(nil, $0) }
        #expect(zip(after, before).map { $0 - $1 } == [1, 1, 0, 0, 0])
        // A previously accepted request is not an exception.
        #expect(try test.fetch("/echo") == "401")
        #expect(test.origins.indices.map { test.sent(nil, $0) } == after)
    }

    // MARK: The vault

    @Test(arguments: [["--key-file"], ["--passphrase", "--password-stdin"]])
    func aRejectionOutlivesRekeying(_ flags: [String]) throws {
        let test = try Lockout(sites: 1, accepted: false)
        try test.user.enroll(password: Countersign.wrongPassword)
        #expect(try test.fetch("/echo") == "401")
        let rekeyed = try test.user.run(["vault", "rekey"] + flags, input: flags.count > 1 ? "new phrase" : nil)
        #expect(rekeyed.status == 0, "\(rekeyed.said)")
        if flags.count == 1 {
            #expect(try test.fetch("/echo") == "401")
            #expect(test.sent() == 1)
        }
        let listed = try test.user.run(
            ["credential", "list"] + (flags.count > 1 ? ["--password-stdin"] : []),
            input: flags.count > 1 ? "new phrase" : nil)
        #expect(listed.output.contains("rejected at "), "\(listed.said)")
    }
}

/// A user with sites that challenge for Basic.
private struct Lockout {
    let user: Countersign
    let origins: [ChallengingOrigin]

    /// `accepted`: the sites have accepted the password.
    init(sites: Int, accepted: Bool = true) throws {
        user = try Countersign()
        try user.enroll()
        origins = try (0..<sites).map { _ in try ChallengingOrigin.acme(.basic) }
        for number in origins.indices { try user.allow(url(number)) }
        guard accepted else { return }
        for number in origins.indices { try #require(try fetch("/echo", number) == "200") }
    }

    func url(_ number: Int = 0) -> String { "https://lockout.test.localhost:\(origins[number].port)" }

    /// Runs `exec -- curl`. Returns the status, or `000` if there is no response.
    func fetch(_ path: String, _ number: Int = 0, seconds: Int = 60) throws -> String {
        try user.run(Self.command(url(number) + path, seconds)).output
    }

    static func command(_ url: String, _ seconds: Int = 60) -> [String] {
        ["exec", "--", "curl", "-q", "-sS", "-m", "\(seconds)", "-o", "/dev/null", "-w", "%{http_code}", url]
    }

    /// Makes acceptances older than those that another process need not repeat.
    func letTimePass() throws {
        let text = user.folder.text("home/breaker.json").replacing(/"acceptedAt" : \d+/, with: "\"acceptedAt\" : 100")
        try user.folder.write("home/breaker.json", text)
    }

    /// How often the origin has received the password for `path`, which has no query; nil for any path.
    func sent(_ path: String? = nil, _ number: Int = 0) -> Int {
        let requests = path.map { origins[number].log.requests(path: $0) } ?? origins[number].log.requests
        return requests.filter { $0.auth == "basic" }.count
    }
}
