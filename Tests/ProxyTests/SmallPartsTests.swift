// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Glibc
import NIOCore
import Testing
import CountersignUpstream

@testable import CountersignProxy

@Suite struct ReplayBufferTests {
    private static func piece(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 0x61, count: count) }

    @Test func exactlyTheLimitIsKeptAndOneByteMoreIsLost() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(4), sent: true)
        buffer.append(Self.piece(6), sent: true)
        #expect(buffer.heldBytes == 10)
        #expect(!buffer.hasLostItsStart)
        buffer.append(Self.piece(1), sent: true)
        #expect(buffer.hasLostItsStart)
        #expect(buffer.pieces.isEmpty)
    }

    @Test func unsentContentIsNeverLost() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(30), sent: false)
        #expect(buffer.isFull)
        #expect(buffer.heldBytes == 30)
        #expect(!buffer.hasLostItsStart)
        buffer.allSent()
        #expect(buffer.hasLostItsStart)
        #expect(buffer.heldBytes == 0)
    }

    @Test func onlyUnsentContentIsKeptIfNoRepeatIsExpected() {
        var buffer = ReplayBuffer(keeps: false, limitBytes: 10)
        buffer.append(Self.piece(20), sent: false)
        #expect(!buffer.hasLostItsStart)
        buffer.allSent()
        #expect(buffer.hasLostItsStart)
        var other = ReplayBuffer(keeps: false, limitBytes: 10)
        other.append(Self.piece(1), sent: true)
        #expect(other.hasLostItsStart)
    }

    @Test func contentThatIsNotRepeatedIsStillSentOnce() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(4), sent: false)
        buffer.wantNoRepeat()
        #expect(buffer.pieces.count == 1)
        buffer.allSent()
        #expect(buffer.pieces.isEmpty && buffer.hasLostItsStart)
    }

    @Test func emptyContentCanBeSentFromItsStart() {
        var buffer = ReplayBuffer(keeps: false, limitBytes: 10)
        buffer.allSent()
        #expect(!buffer.hasLostItsStart)
    }
}

extension ProtectionSpaceCache {
    fileprivate func space(for path: String, key: Key) -> Space? {
        snapshot(of: key).space(for: Array(path.utf8)[...])
    }
}

extension ProtectionSpaceCache.Space {
    fileprivate var realm: String? { accepted.space.realm }
}

extension AcceptedAnswer {
    /// A Basic answer with the text `credentials`.
    static func basic(_ credentials: String, realm: String, at origin: Origin) -> AcceptedAnswer {
        AcceptedAnswer(
            Offer(
                BasicAuthenticator.shared,
                Challenge(scheme: "Basic", parameters: [AuthParameter("realm", realm)])),
            at: origin,
            credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)),
            preemption: .answer(.fixed(AuthorizationField(scheme: "Basic", credentials: Array(credentials.utf8)))))
    }
}

@Suite struct ProtectionSpaceCacheTests {
    private static func key(
        host: String = "a.example", trust: UpstreamKey.Trust = .verified, credential: String = "enrollment",
        generation: UInt64 = 1, principal: UInt32? = 1
    ) -> ProtectionSpaceCache.Key {
        .init(
            origin: Origin(scheme: .https, host: host, port: 443), trust: trust,
            credential: CredentialReference(name: credential, source: .vault(generation: generation)),
            principal: principal)
    }

    private static func space(_ path: String, realm: String) throws -> ProtectionSpaceCache.Space {
        .init(
            .basic(realm, realm: realm, at: Origin(scheme: .https, host: "a.example", port: 443)),
            scope: try #require(PathScope(challengedPath: path)))
    }

    @Test func aSnapshotIsCurrentOnlyUntilAChange() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "first"), key: Self.key())
        let first = cache.snapshot(of: Self.key())
        #expect(cache.isCurrent(first))
        cache.add(try Self.space("/a", realm: "second"), key: Self.key())
        #expect(first.space(for: Array("/a".utf8)[...])?.realm == "first")
        #expect(!cache.isCurrent(first))
        let second = cache.snapshot(of: Self.key())
        #expect(second.space(for: Array("/a".utf8)[...])?.realm == "second")
        cache.removeAll(of: Self.key())
        #expect(!cache.isCurrent(second))
        #expect(cache.snapshot(of: Self.key()).space(for: Array("/a".utf8)[...]) == nil)
    }

    @Test func onlyPathsInTheScopeAreFound() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/docs/a", realm: "r"), key: Self.key())
        #expect(cache.space(for: "/docs/b?c", key: Self.key())?.realm == "r")
        #expect(cache.space(for: "/other", key: Self.key()) == nil)
        #expect(cache.space(for: "/docs/../other", key: Self.key()) == nil)
    }

    @Test func everyPartOfTheKeyCounts() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "r"), key: Self.key())
        #expect(cache.space(for: "/a", key: Self.key()) != nil)
        for other in [
            Self.key(host: "b.example"), Self.key(credential: "other"), Self.key(generation: 2),
            Self.key(principal: nil),
            Self.key(principal: 2), Self.key(trust: .accepted(leaf: [1], answering: true)),
        ] {
            #expect(cache.space(for: "/a", key: other) == nil)
        }
    }

    @Test func theLatestEntryForAScopeCountsAndForgettingRemovesAll() throws {
        let cache = ProtectionSpaceCache()
        cache.add(try Self.space("/a", realm: "old"), key: Self.key())
        cache.add(try Self.space("/b", realm: "new"), key: Self.key())
        #expect(cache.space(for: "/a", key: Self.key())?.realm == "new")
        cache.removeAll(of: Self.key())
        #expect(cache.space(for: "/a", key: Self.key()) == nil)
    }

    @Test func theNumberOfSpacesPerKeyIsLimited() throws {
        let cache = ProtectionSpaceCache()
        for number in 0..<33 { cache.add(try Self.space("/\(number)/x", realm: "\(number)"), key: Self.key()) }
        #expect(cache.space(for: "/0/x", key: Self.key()) == nil)
        #expect(cache.space(for: "/1/x", key: Self.key())?.realm == "1")
        #expect(cache.space(for: "/32/x", key: Self.key())?.realm == "32")
    }
}

@Suite struct ProxyStatusTests {
    @Test(arguments: [
        ("plain", #""plain""#), (#"a "b" \c"#, #""a \"b\" \\c""#), ("line\r\nSet-Cookie: x", #""line??Set-Cookie: x""#),
        ("münchen\u{0}\u{7F}", #""m?nchen??""#), ("", #""""#),
    ]) func detailsAreAStructuredFieldString(_ text: String, _ quoted: String) {
        #expect(ProxyStatus.value(error: nil, details: text) == "countersign; details=\(quoted)")
    }

    @Test func theErrorPrecedesTheDetails() {
        #expect(ProxyStatus.value(error: "dns_error", details: "x") == #"countersign; error=dns_error; details="x""#)
        #expect(ProxyStatus.value(error: nil, details: nil) == "countersign")
    }
}

@Suite struct ClientTokenTests {
    // printf 'countersign:t0ken' | base64, and so on.
    @Test(arguments: [
        "Basic Y291bnRlcnNpZ246dDBrZW4=", "basic OnQwa2Vu", "BASIC  YW55Ym9keTp0MGtlbg==", "Bearer t0ken",
        "bearer  t0ken",
    ]) func theTokenIsThePasswordOrTheBearer(_ value: String) {
        #expect(ClientToken.matches([value], Secret(utf8: "t0ken")))
    }

    @Test(arguments: [
        [], ["Bearer t0ke"], ["Bearer t0ken1"], ["Bearer T0KEN"], ["Bearer"], ["Bearer "], ["t0ken"], ["Digest t0ken"],
        ["Basic t0ken"], ["Basic dDBrZW4="], ["Basic !"], ["Basic OnQwa2Vu", "Bearer t0ken"],
        ["Bearer t0ken", "Bearer t0ken"],
    ]) func nothingElseIs(_ values: [String]) {
        #expect(!ClientToken.matches(values, Secret(utf8: "t0ken")))
    }

    @Test func aTokenMayContainColons() {
        // printf 'u:a:b' | base64
        #expect(ClientToken.matches(["Basic dTphOmI="], Secret(utf8: "a:b")))
    }
}

@Suite struct AccessLogTests {
    @Test(arguments: [
        ("plain ä", "plain ä"), ("\"\\", #"\"\\"#), ("a\r\nb\t\u{0}", #"a\u000d\nb\u0009\u0000"#),
        ("\u{1F}\u{7F} ", #"\u001f\u007f "#),
    ]) func textIsEscapedForJSON(_ text: String, _ escaped: String) {
        #expect(JSONObject.escaped(text) == escaped)
    }

    // date -u -d @1700000000 and so on.
    @Test(arguments: [
        (Int64(0), Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400, 7, "2000-02-29T00:00:00.007Z"),
        (1_700_000_000, 45, "2023-11-14T22:13:20.045Z"), (2_147_483_648, 999, "2038-01-19T03:14:08.999Z"),
    ]) func theTimeIsRFC3339(_ seconds: Int64, _ milliseconds: Int64, _ text: String) {
        #expect(AccessLog.timestamp((seconds, milliseconds)) == text)
    }

    @Test func aLineIsOneJSONObjectAndTheFileIsPrivate() throws {
        let path = "/tmp/countersign-access-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        defer { unlink(path) }
        let log = try AccessLog(path: path)
        var outcome = AccessLog.Outcome()
        outcome.status = 200
        let entry = AccessLog.Entry(
            startedAt: (0, 1), id: 1, client: ClientProcess(uid: 7, pid: 8), method: "G\"T",
            site: "https://a.example:443", decision: .intercept, outcome: outcome, durationMilliseconds: -5)
        log.write(entry)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count, file)
        #expect(
            String(decoding: bytes[..<count], as: UTF8.self)
                == #"{"time":"1970-01-01T00:00:00.001Z","id":1,"pid":8,"uid":7,"#
                + #""method":"G\"T","site":"https://a.example:443","decision":"intercept","rounds":0,"status":200,"#
                + #""bytes":0,"ms":0}"# + "\n")
    }
}
