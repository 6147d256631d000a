// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignTestOrigin
import FoundationEssentials
import Glibc
import Synchronization
import Testing

@testable import Countersign
@testable import CountersignChallenges
@testable import CountersignAnswering
@testable import CountersignHome

/// The breaker's records are shared by all processes of a home. Each board here represents a process.
@Suite(.waiting) struct BreakerFileTests {
    private let folder: TemporaryFolder
    private let time = Time()

    private final class Time: Sendable {
        let now = Mutex<Int64>(1_800_000_000)
    }

    private final class Process: Sendable {
        let board: BreakerBoard
        let said = Warnings()

        init(_ home: String, _ time: Time) {
            let now: @Sendable () -> Int64 = { time.now.withLock { $0 } }
            board = BreakerBoard(
                now: now, storage: BreakerFile(home: Home(path: home), now: now).storage, warn: said.add)
        }
    }

    private final class Warnings: Sendable {
        let all = Mutex<[String]>([])
        @Sendable func add(_ text: String) { all.withLock { $0.append(text) } }
    }

    init() throws {
        folder = try TemporaryFolder("breaker")
    }

    private var home: String { folder.file("home") }
    private var path: String { "\(home)/breaker.json" }

    private func process() -> Process { Process(home, time) }

    private static func key(_ host: String = "git.corp.example", realm: String? = "r") -> Breaker.Key {
        let credential = PasswordCredential(
            name: "enrollment", user: "jdoe", password: Secret(utf8: "kanarie-5521"), generation: 1)
        return Breaker.Key(
            space: AuthenticationSpace(
                origin: Origin(scheme: .https, host: host, port: 443), realm: realm, scheme: .basic),
            credential: credential.tagged(with: Secret(utf8: "key")).reference)
    }

    private static let refusal = Breaker.Permission.refused(
        reason: Refusal(
            .blocked("enrollment"), "credential \"enrollment\" was rejected here and has not changed since"))

    // MARK: Sharing

    @Test func aRejectionInOneProcessCountsInTheNext() async throws {
        let first = process()
        #expect(first.board.requestAtOnce(Self.key()) == .go)
        first.board.ended(Self.key(), .rejected)
        await first.board.flush()
        #expect(process().board.requestAtOnce(Self.key()) == Self.refusal)
        #expect(process().board.requestAtOnce(Self.key("other.corp.example")) == .go)
    }

    @Test func aRunningProcessLearnsOfARejectionElsewhere() async throws {
        let (first, second) = (process(), process())
        #expect(second.board.requestAtOnce(Self.key()) == .go)
        second.board.ended(Self.key(), .accepted)
        await second.board.flush()
        #expect(first.board.requestAtOnce(Self.key()) == .go)
        // The same request was accepted before.
        first.board.ended(Self.key(), .rejected)
        await first.board.flush()
        #expect(second.board.mayPreempt(Self.key()))
        second.board.poll()
        await second.board.flush()
        #expect(!second.board.mayPreempt(Self.key()))
        #expect(second.board.requestAtOnce(Self.key()) == Self.refusal)
    }

    @Test func oneProcessAtATimeTries() async throws {
        let (first, second) = (process(), process())
        #expect(first.board.requestAtOnce(Self.key()) == .go)
        #expect(second.board.requestAtOnce(Self.key()) == .wait)
        let again = Mutex(0)
        #expect(second.board.request(Self.key(), again: { again.withLock { $0 += 1 } }) == .wait)
        first.board.ended(Self.key(), .accepted)
        try #require(try await eventually { again.withLock { $0 } > 0 })
        #expect(second.board.requestAtOnce(Self.key()) == .go)
        #expect(process().board.requestAtOnce(Self.key()) == .go)
    }

    @Test func twentyProcessesTogetherSendAWrongPasswordOnce() async throws {
        let (home, time) = (home, time)
        let sent = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    let process = Process(home, time)
                    var sent = 0
                    while true {
                        switch process.board.requestAtOnce(Self.key()) {
                        case .permitted:
                            sent += 1
                            process.board.ended(Self.key(), .rejected)
                            await process.board.flush()
                        case .wait: await Task.yield()
                        case .refused, .unsuitable: return sent
                        }
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sent == 1)
    }

    // MARK: Processes that end

    @Test func anAttemptOfAProcessThatEndedCountsAsUnanswered() async throws {
        for isSecond in [false, true] {
            var crashed: Process? = process()
            let permission = crashed?.board.requestAtOnce(Self.key())
            #expect(permission == .go)
            #expect(process().board.requestAtOnce(Self.key()) == .wait)
            // Closes its files, and with them the lock.
            crashed = nil
            if isSecond { break }
        }
        #expect(
            process().board.requestAtOnce(Self.key())
                == .unsuitable(
                    reason: Refusal(
                        .heldBack("enrollment"),
                        "credential \"enrollment\" was sent here without a response, and is not sent for "
                            + "30 minutes; `countersign credential retry enrollment` permits an attempt")))
    }

    @Test func anAttemptThatTakesLongKeepsNobodyWaitingAndIsNotAbandoned() async throws {
        let slow = process()
        #expect(slow.board.requestAtOnce(Self.key()) == .go)
        #expect(process().board.requestAtOnce(Self.key()) == .wait)
        time.now.withLock { $0 += 601 }
        for _ in 1...3 {
            #expect(
                process().board.requestAtOnce(Self.key())
                    == .unsuitable(
                        reason: "another request has been trying credential \"enrollment\" for more than ten minutes"))
        }
        slow.board.ended(Self.key(), .accepted)
        await slow.board.flush()
        #expect(process().board.requestAtOnce(Self.key()) == .go)
    }

    /// NFS turns a flock(2) into a lock of all bytes of the file.
    @Test func theLockOfARunningProcessIsNotInTheFileThatWritersLock() async throws {
        let process = process()
        #expect(process.board.requestAtOnce(Self.key()) == .go)
        #expect(try Self.isAnyByteLocked("\(home)/breaker.running"))
        #expect(try !Self.isAnyByteLocked("\(home)/breaker.lock"))
        withExtendedLifetime(process) {}
    }

    private static func isAnyByteLocked(_ path: String) throws -> Bool {
        let file = open(path, O_RDWR)
        try #require(file >= 0)
        defer { close(file) }
        var whole = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
        // F_OFD_GETLK
        try #require(fcntl(file, 36, &whole) == 0)
        return Int32(whole.l_type) != F_UNLCK
    }

    @Test func anAttemptIsOnlyForTheRequestForWhichItWasPermitted() async throws {
        let process = process()
        let (one, other) = (
            Breaker.RequestTag(method: "GET", target: "/1"), Breaker.RequestTag(method: "GET", target: "/2")
        )
        #expect(process.board.request(Self.key(), for: one, again: {}) == .wait)
        await process.board.flush()
        #expect(process.board.request(Self.key(), for: other, again: {}) == .wait)
        let isGiven = try await eventually { process.board.request(Self.key(), for: one, again: {}) == .go }
        #expect(isGiven)
    }

    /// It ends the pause in other processes, too.
    @Test func anAcceptanceElsewhereIsStoredEvenIfItsSpaceIsTheSame() async throws {
        let process = process()
        for host in ["a.example", "b.example"] {
            #expect(process.board.requestAtOnce(Self.key(host)) == .go)
            process.board.ended(Self.key(host), .accepted)
        }
        let new = Breaker.RequestTag(method: "GET", target: "/new")
        process.board.ended(Self.key("a.example"), for: new, .rejected)
        #expect(process.board.requestAtOnce(Self.key("b.example")) == .go)
        process.board.ended(Self.key("b.example"), .accepted)
        await process.board.flush()
        let stored = try BreakerFile(home: Home(path: home)) { 0 }.read()
        #expect(stored.values.map(\.unaccepted.count) == [0])
        #expect(stored.values.flatMap { $0.spaces.values.map(\.unaccepted.count) }.sorted() == [0, 1])
    }

    // MARK: The file

    @Test func theFileIsPrivateAndContainsNoSecret() async throws {
        let process = process()
        #expect(process.board.requestAtOnce(Self.key()) == .go)
        process.board.ended(Self.key(), for: .init(method: "GET", target: "/secret-path"), .accepted)
        await process.board.flush()
        for file in [path, "\(home)/breaker.lock", "\(home)/breaker.running"] {
            var found = stat()
            #expect(stat(file, &found) == 0)
            #expect(found.st_mode & 0o777 == 0o600)
        }
        let text = String(decoding: TextFile.bytes(path), as: UTF8.self)
        #expect(text.contains("https://git.corp.example:443"))
        for secret in ["kanarie", "jdoe", "secret-path"] { #expect(!text.contains(secret)) }
        // printf 'jdoe\0kanarie-5521' | openssl dgst -sha256 -hmac key
        #expect(text.contains("8195826f1410c52eee4a35f4eb8a8283"))
    }

    @Test func recordsAreReadAsTheyWereWritten() throws {
        var breaker = Breaker()
        let tags = [(0, 0), (1, UInt64.max), (.max, 1)].map { Breaker.RequestTag(path: $0, whole: $1) }
        let keys = [Self.key(), Self.key(realm: nil), Self.key("::1", realm: "ü \"\u{0} 𝄞")]
        for (key, tag) in zip(keys, tags) {
            _ = breaker.attemptEnded(key, for: tag, .accepted, owner: 1, at: 100)
            _ = breaker.attemptEnded(key, for: .init(path: 77, whole: 77), .rejected, owner: 1, at: 200)
        }
        _ = breaker.attemptEnded(keys[0], for: tags[0], .rejected, owner: 1, at: 300)
        _ = breaker.attemptEnded(Self.key("a.example"), for: tags[2], .unanswered, owner: 1, at: 300)
        breaker.attemptBegan(Self.key("b.example"), for: tags[2], owner: UInt64(Int64.max), at: 300)
        for account in breaker.accounts.keys { breaker.unprove(account) }
        #expect(StoredRecords(breaker.accounts).records == breaker.accounts)
    }

    // MARK: Accepted schemes

    private static let weak = OfferedSchemes(strongest: .basic, permitted: AuthenticationScheme.allCases)

    private static func accepted(_ scheme: AuthenticationScheme, at origin: Origin) -> Breaker.Key {
        Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: nil, scheme: scheme), credential: key().credential)
    }

    /// Also those of a ticket, which other processes do not know.
    @Test(arguments: [false, true])
    func acceptedSchemesAreSharedAndKept(isTicket: Bool) async throws {
        let origin = Self.key().space.origin
        let ticket = Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: nil, scheme: .negotiate),
            credential: CredentialReference(name: "t", source: .program).ticket(version: 1, at: origin))
        let (first, running) = (process(), process())
        first.board.ended(isTicket ? ticket : Self.accepted(.ntlm, at: origin), .accepted)
        await first.board.flush()
        running.board.poll()
        await running.board.flush()
        for process in [first, running, process()] {
            let permission = process.board.requestAtOnce(Self.key(), inAnswerTo: Self.weak)
            if process === first || process === running {
                guard case .unsuitable(let reason) = permission else {
                    Issue.record("\(permission)")
                    continue
                }
                #expect(reason.text.hasSuffix("`countersign credential retry enrollment` permits an attempt"))
            }
            await process.board.flush()
        }
        // A process that has just started reads the records before it decides, or stores its attempt in them.
        let file = BreakerFile(home: Home(path: home)) { 1_800_000_000 }
        #expect(throws: CountersignError.self) { try file.permitRetry(of: "other") }
        #expect(try file.permitRetry(of: "enrollment") == ["enrollment"])
        running.board.poll()
        await running.board.flush()
        #expect(running.board.requestAtOnce(Self.key(), inAnswerTo: Self.weak) == .go)
    }

    @Test func acceptedSchemesAreReadAsTheyWereWritten() throws {
        let schemes = AcceptedSchemes([
            Self.key().space.origin: .init(schemes: [.ntlm, .digest], withheld: ["a", "b"], at: 5),
            Origin(scheme: .proxy, host: "proxy.corp.example", port: 3128): .init(schemes: [.negotiate], at: 6),
            Origin(scheme: .http, host: "::1", port: 8080): .init(schemes: [.basic], at: 7),
        ])
        let stored = StoredRecords([:], schemes)
        #expect(stored.acceptedSchemes == schemes)
        let again = try JSONDecoder().decode(StoredRecords.self, from: try JSONEncoder().encode(stored))
        #expect(again.acceptedSchemes == schemes)
    }

    @Test func aFileOfAnEarlierVersionIsRead() throws {
        try folder.write("home/breaker.json", "{\"format\":1,\"accounts\":[]}")
        let file = BreakerFile(home: Home(path: home)) { 1_800_000_000 }
        #expect(try file.read().isEmpty)
        try file.update { _ = $0.attemptEnded(Self.key(), for: .unknown, .accepted, owner: 1, at: 1_800_000_000) }
        #expect(String(decoding: TextFile.bytes(path), as: UTF8.self).contains("\"accepted\""))
    }

    @Test func aRemovedFileIsAFreshStart() async throws {
        let first = process()
        #expect(first.board.requestAtOnce(Self.key()) == .go)
        first.board.ended(Self.key(), .rejected)
        await first.board.flush()
        #expect(unlink(path) == 0)
        #expect(unlink("\(home)/breaker.lock") == 0)
        #expect(unlink("\(home)/breaker.running") == 0)
        #expect(process().board.requestAtOnce(Self.key()) == .go)
    }

    @Test func aFileThatCouldNotBeReadAgainIsNotWritten() async throws {
        let file = BreakerFile(home: Home(path: home)) { 100 }
        try file.update { _ = $0.attemptEnded(Self.key(), for: .unknown, .rejected, owner: 1, at: 100) }
        let before = TextFile.bytes(path)
        let long = CredentialReference(
            name: String(repeating: "n", count: 4 << 20), source: .program, tag: Self.key().credential.tag)
        let error = #expect(throws: CountersignError.self) {
            try file.update {
                let key = Breaker.Key(space: Self.key().space, credential: long)
                _ = $0.attemptEnded(key, for: .unknown, .accepted, owner: 1, at: 100)
            }
        }
        #expect(error?.detail.hasSuffix("would become too large to be read again") == true)
        #expect(TextFile.bytes(path) == before)
        #expect(try file.read().count == 1)
    }

    private static let overflowing = """
        {"format":1,"accounts":[{"tag":"\(String(repeating: "00", count: 16))","name":"x","spaces":[{
        "site":"https://a.example","scheme":"basic","changedAt":1,
        "attempts":[{"by":1,"id":1,"request":"00","since":-9223372036854775808,"number":1}]}]}]}
        """

    @Test(arguments: ["", "{", "{\"format\":2,\"accounts\":[]}", "{\"format\":1,\"accounts\":[{}]}", overflowing])
    func aDamagedFilePermitsNothing(_ text: String) async throws {
        try folder.write("home/breaker.json", text)
        let process = process()
        guard case .refused(let reason) = process.board.requestAtOnce(Self.key()) else {
            Issue.record("an attempt is permitted")
            return
        }
        #expect(reason.text.hasPrefix("the attempt cannot be recorded: ") && reason.text.contains("breaker.json"))
        #expect(process.said.all.withLock { $0.count } == 1)
    }

    @Test func oldRecordsAreRemoved() async throws {
        let process = process()
        #expect(process.board.requestAtOnce(Self.key()) == .go)
        process.board.ended(Self.key(), .accepted)
        time.now.withLock { $0 += 91 * 86_400 }
        #expect(process.board.requestAtOnce(Self.key("other.corp.example")) == .go)
        process.board.ended(Self.key("other.corp.example"), .rejected)
        await process.board.flush()
        let file = BreakerFile(home: Home(path: home)) { 0 }
        #expect(try file.read().values.flatMap(\.spaces.keys).map(\.origin.host) == ["other.corp.example"])
    }
}

extension Breaker {
    /// As another process reads it.
    fileprivate mutating func unprove(_ account: Account) {
        var accounts = accounts
        accounts[account]?.provenAt = nil
        self = Breaker(capacity: capacity, accounts: accounts)
    }
}
