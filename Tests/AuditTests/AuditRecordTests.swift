// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAudit

@Suite struct AuditRecordTests {
    /// The documented form, byte by byte.
    @Test func aLineHasItsMembersInOrder() {
        var chain = AuditChain()
        let first = String(decoding: chain.begin(at: AuditFixture.time(0)), as: UTF8.self)
        let zeros = String(repeating: "0", count: 64)
        let content = "{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"previous\":\"\(zeros)\""
        let hash = Hex.encode(Digest.sha256.hash(Array((content + "}").utf8)))
        #expect(first == "\(content),\"hash\":\"\(hash)\"}\n")
        let second = String(decoding: chain.use(AuditFixture.use(2)), as: UTF8.self)
        #expect(
            second.hasPrefix(
                "{\"n\":2,\"time\":\"2026-01-01T00:00:02.250Z\",\"kind\":\"use\",\"uid\":1000,\"pid\":4002,"
                    + "\"program\":\"/usr/bin/git\",\"cgroup\":\"/user.slice\","
                    + "\"site\":\"https://git.corp.example:443\",\"scheme\":\"ntlm\",\"credential\":\"default\","
                    + "\"generation\":3,\"method\":\"GET\",\"status\":200,"
                    + "\"result\":\"accepted\",\"previous\":\"\(hash)\",\"hash\":\""))
    }

    @Test func recordsAreReadBack() throws {
        var least = CredentialUse(
            time: AuditFixture.time(1), site: "s", scheme: "basic", credential: "a\"\\\n\u{202E}é", method: "PUT",
            status: 0,
            result: .unanswered, isDryRun: true)
        least.generation = .max
        let cut = AuditRecord.Cut(bytes: 7, digest: Hex.encode(Digest.sha256.hash([1])))
        var chain = AuditChain()
        var records: [AuditRecord] = []
        for line in [
            chain.begin(at: AuditFixture.time(0)), chain.use(least), chain.use(AuditFixture.use(3)),
            chain.lost(12, at: AuditFixture.time(4)), chain.interrupted(at: AuditFixture.time(5), after: cut),
            chain.interrupted(at: AuditFixture.time(6), after: nil),
            chain.continue(at: AuditFixture.time(7), after: cut),
            chain.start(at: AuditFixture.time(8)),
            try chain.signed(at: AuditFixture.time(9), key: AuditFixture.key),
        ] {
            #expect(line.last == 0x0A && !line.dropLast().contains(0x0A))
            records.append(try AuditRecord(line.dropLast()))
        }
        least.generation = UInt64(Int64.max)
        #expect(records.map(\.number) == Array(1...9))
        #expect(records.last?.hash == chain.hash)
        #expect(
            records.dropLast().map(\.kind) == [
                .begin(nil), .use(least), .use(AuditFixture.use(3)), .lost(12), .interrupted(cut), .interrupted(nil),
                .continue(cut), .start,
            ])
        #expect(chain.unsigned == 0)
    }

    /// Each has a right hash.
    @Test(arguments: [
        ("{\"n\":0,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"previous\":\"P\"", "\"n\""),
        ("{\"n\":-1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"previous\":\"P\"", "\"n\""),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00Z\",\"kind\":\"begin\",\"previous\":\"P\"", "\"time\""),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"other\",\"previous\":\"P\"", "\"kind\""),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"previous\":\"p\"", "\"previous\""),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"x\":1,\"previous\":\"P\"", "\"x\""),
        ("{\"n\":1,\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"begin\",\"previous\":\"P\"", "twice"),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"lost\",\"previous\":\"P\"", "\"count\""),
        ("{\"n\":1,\"time\":\"2026-01-01T00:00:00.250Z\",\"kind\":\"use\",\"previous\":\"P\"", "\"site\""),
        ("[1", "expected"),
    ])
    func otherObjectsAreNoRecords(content: String, word: String) {
        let content = content.replacing("\"P\"", with: "\"\(String(repeating: "0", count: 64))\"")
        let hash = Hex.encode(Digest.sha256.hash(Array((content + "}").utf8)))
        do throws(AuditLineFault) {
            _ = try AuditRecord(Array("\(content),\"hash\":\"\(hash)\"}".utf8))
            Issue.record("\(content) was read")
        } catch {
            guard case .malformed(let reason) = error else {
                Issue.record("\(content): \(error)")
                return
            }
            #expect(reason.contains(word), "\(content)")
        }
    }

    @Test func aLineThatIsTooLongIsNoRecord() {
        var use = AuditFixture.use(1)
        use.program = String(repeating: "x", count: AuditRecord.longestLineBytes)
        var chain = AuditChain()
        let line = chain.use(use)
        #expect(throws: AuditLineFault.malformed("the line is too long")) { try AuditRecord(line.dropLast()) }
    }

    @Test func linesForPeopleNameWhoDidWhat() throws {
        var chain = AuditChain()
        _ = chain.begin(at: AuditFixture.time(0))
        let record = try AuditRecord(chain.use(AuditFixture.use(2)).dropLast())
        #expect(
            record.text
                == "\(record.time.local)  #2      accepted    200  GET https://git.corp.example:443  "
                + "ntlm, default (version 3)  /usr/bin/git, process 4002, user 1000, /user.slice")
    }

    @Test func outputIsOfTheSitesThatMatch() throws {
        var chain = AuditChain()
        let lines = [chain.begin(at: AuditFixture.time(0)), chain.use(AuditFixture.use(2))]
        func output(_ output: AuditOutput) throws -> [String] {
            try lines.compactMap { output.text(of: try AuditRecord($0.dropLast()), $0.dropLast()) }
        }
        #expect(try output(AuditOutput(.jsonl)) == lines.map { String(decoding: $0, as: UTF8.self) })
        #expect(try output(AuditOutput(.jsonl) { $0 == "https://git.corp.example:443" }).count == 1)
        #expect(try output(AuditOutput(.text) { $0 == "https://other.example:443" }) == [])
        #expect(try output(AuditOutput(.text)).count == 2)
        #expect(try output(AuditOutput(.ocsf)).count == 1)
        var hostile = AuditFixture.use(3)
        hostile.program = "\u{1B}[2J\u{202E}"
        let line = chain.use(hostile)
        let text = try #require(AuditOutput(.text).text(of: try AuditRecord(line.dropLast()), line))
        #expect(text.unicodeScalars.dropLast().allSatisfy { (0x20...0x7E).contains($0.value) })
    }
}
