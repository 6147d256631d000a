// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAudit

@Suite struct AuditVerifierTests {
    @Test func anIntactAuditIsComplete() throws {
        let lines = try AuditFixture.lines()
        let report = AuditFixture.verify([Array(lines.joined())])
        #expect(report.isIntact)
        #expect(report.records == 50 && report.first == 1 && report.last == 50 && report.uses == 46)
        #expect(report.signatures == 3 && report.unsigned == 0 && report.isEnded && report.cutBytes == 0)
        #expect(report.keys == [AuditFixture.key.publicKey.id])
        #expect(report.lines.first?.hasPrefix("complete: the records 1 to 50, 46 uses of credentials, from ") == true)
        let signed = "signed by \(AuditFixture.key.publicKey.id.prefix(16)) up to record 50, and closed"
        #expect(report.lines.contains(signed), "\(report.lines)")
    }

    /// A change of the 50 lines, and the fault that is found.
    struct Tampering: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let kind: AuditFault.Kind
        let line: Int
        let record: UInt64?
        let change: @Sendable (inout [[UInt8]]) throws -> Void

        init(
            _ name: String, _ kind: AuditFault.Kind, line: Int, record: UInt64?,
            _ change: @escaping @Sendable (inout [[UInt8]]) throws -> Void
        ) {
            testDescription = name
            self.kind = kind
            self.line = line
            self.record = record
            self.change = change
        }

        static func replace(_ old: String, _ new: String, in line: inout [UInt8]) {
            line = Array(String(decoding: line, as: UTF8.self).replacing(old, with: new).utf8)
        }

        /// Makes the hash of a line right again.
        static func rehash(_ line: inout [UInt8]) {
            let content = line.dropLast(AuditRecord.hashMemberBytes + 1)
            let hash = Hex.encode(Digest.sha256.hash(content + [UInt8(ascii: "}")]))
            line = content + Array(",\"hash\":\"\(hash)\"}\n".utf8)
        }

        /// Makes the lines from `index` on again, with the signatures that they have: what somebody without the key
        /// can do.
        static func rechain(_ lines: inout [[UInt8]], from index: Int) {
            for index in index..<lines.count {
                rehash(&lines[index])
                guard index + 1 < lines.count else { return }
                let text = String(decoding: lines[index + 1], as: UTF8.self)
                guard let start = text.firstRange(of: "\"previous\":\"")?.upperBound else { return }
                let hash = String(decoding: lines[index].dropLast(3).suffix(64), as: UTF8.self)
                let end = text.utf8.index(start, offsetBy: 64)
                lines[index + 1] = Array((text[..<start] + hash + text[end...]).utf8)
            }
        }
    }

    static let tamperings = [
        Tampering("a changed status", .changed, line: 7, record: 7) {
            Tampering.replace("\"status\":200", "\"status\":401", in: &$0[6])
        },
        Tampering("a changed hash", .changed, line: 7, record: 7) { lines in
            lines[6][lines[6].count - 4] ^= 1
        },
        Tampering("a changed record with its own hash made right", .unlinked, line: 8, record: 8) {
            Tampering.replace("default", "another", in: &$0[6])
            Tampering.rehash(&$0[6])
        },
        Tampering("a changed record with all hashes made right", .signature, line: 20, record: 20) {
            Tampering.replace("default", "another", in: &$0[6])
            Tampering.rechain(&$0, from: 6)
        },
        Tampering("a changed record after the last checkpoint but the end", .signature, line: 50, record: 50) {
            Tampering.replace("default", "another", in: &$0[44])
            Tampering.rechain(&$0, from: 44)
        },
        Tampering("a removed record", .removed, line: 9, record: 10) { $0.remove(at: 8) },
        Tampering("removed records", .removed, line: 9, record: 30) { $0.removeSubrange(8..<29) },
        Tampering("a removed checkpoint", .removed, line: 20, record: 21) { $0.remove(at: 19) },
        Tampering("a removed beginning", .headless, line: 1, record: 2) { $0.removeFirst() },
        Tampering("two records exchanged", .removed, line: 12, record: 13) { $0.swapAt(11, 12) },
        Tampering("a record moved to the end", .removed, line: 9, record: 10) { $0.append($0.remove(at: 8)) },
        Tampering("a repeated record", .misplaced, line: 10, record: 9) { $0.insert($0[8], at: 9) },
        Tampering("a record of another place inserted", .misplaced, line: 31, record: 5) { $0.insert($0[4], at: 30) },
        Tampering("a made record inserted", .unlinked, line: 10, record: 10) {
            var chain = AuditChain(number: 9, hash: String(repeating: "a", count: 64), unsigned: 0)
            $0.insert(chain.use(AuditFixture.use(1)), at: 9)
        },
        Tampering("a second beginning", .misplaced, line: 10, record: 1) { $0.insert($0[0], at: 9) },
        Tampering("an empty line", .malformed, line: 10, record: 10) { $0.insert([0x0A], at: 9) },
        Tampering("a line of text", .malformed, line: 10, record: 10) { $0.insert(Array("text\n".utf8), at: 9) },
        Tampering("a line that ends early", .malformed, line: 10, record: 10) { $0[9] = $0[9].prefix(90) + [0x0A] },
        Tampering("a line that ends early with the mark", .cut, line: 10, record: 11) {
            $0[9] = $0[9].prefix(90) + Array("<cut>\n".utf8)
        },
        Tampering("two lines on one", .changed, line: 10, record: 10) { $0[9].removeLast() },
        Tampering("a line break of another system", .malformed, line: 10, record: 10) {
            $0[9] = $0[9].dropLast() + [0x0D, 0x0A]
        },
        Tampering("a checkpoint of another key", .otherKey, line: 20, record: 20) { lines in
            var chain = try AuditChain(after: lines[..<19])
            lines[19] = try chain.signed(at: AuditFixture.time(20), key: AuditFixture.otherKey)
        },
        Tampering("a checkpoint of another key that names ours", .signature, line: 20, record: 20) { lines in
            var chain = try AuditChain(after: lines[..<19])
            lines[19] = try chain.signed(at: AuditFixture.time(20), key: AuditFixture.otherKey)
            Tampering.replace(AuditFixture.otherKey.publicKey.id, AuditFixture.key.publicKey.id, in: &lines[19])
            Tampering.rehash(&lines[19])
        },
        Tampering("an end made a checkpoint", .signature, line: 50, record: 50) {
            Tampering.replace("\"end\"", "\"checkpoint\"", in: &$0[49])
            Tampering.rehash(&$0[49])
        },
        Tampering("an invented unfinished line", .cut, line: 11, record: 11) { lines in
            var chain = try AuditChain(after: lines[..<10])
            let cut = AuditRecord.Cut(bytes: 5, digest: String(repeating: "a", count: 64))
            lines.replaceSubrange(10..., with: [chain.interrupted(at: AuditFixture.time(11), after: cut)])
        },
    ]

    @Test(arguments: tamperings)
    func tamperingIsFoundAtItsPlace(_ tampering: Tampering) throws {
        var lines = try AuditFixture.lines()
        try tampering.change(&lines)
        let report = AuditFixture.verify([Array(lines.joined())])
        #expect(report.fault?.kind == tampering.kind, "\(report.lines)")
        #expect(report.fault?.line == tampering.line)
        #expect(report.fault?.record == tampering.record)
        #expect(!report.isIntact)
        #expect(report.lines.first?.hasPrefix("damaged: 0: line \(tampering.line)") == true, "\(report.lines)")
    }

    @Test func everyChangedBitIsFound() throws {
        var chain = AuditChain()
        let lines = [
            chain.begin(at: AuditFixture.time(0)), chain.use(AuditFixture.use(2)),
            try chain.signed(at: AuditFixture.time(3), key: AuditFixture.key), chain.use(AuditFixture.use(4)),
        ]
        #expect(AuditFixture.verify([Array(lines.joined())]).isIntact)
        var verifier = AuditVerifier(key: AuditFixture.key.publicKey)
        verifier.begin("0")
        for (number, line) in lines.enumerated() {
            let rest = Array(lines[(number + 1)...].joined())
            for index in line.indices {
                for bit in 0..<8 {
                    var changed = line
                    changed[index] ^= 1 << UInt8(bit)
                    let report = AuditFixture.verify(changed + rest, with: verifier)
                    if number == 3, index == line.count - 1 {
                        // Nothing tells a changed last line feed from an unfinished line.
                        #expect(report.fault == nil && report.cutBytes > 0 && report.last == 3)
                    } else {
                        #expect(report.fault?.line == number + 1, "bit \(bit) of byte \(index) of line \(number + 1)")
                    }
                }
            }
            #expect(verifier.read(line.dropLast(), isTerminated: true) != nil)
        }
    }

    @Test func aCutEndIsToldFromTampering() throws {
        let lines = try AuditFixture.lines().prefix(21)
        let bytes = Array(lines.joined())
        let start = bytes.count - lines[20].count - lines[19].count
        for end in start..<bytes.count {
            let report = AuditFixture.verify([Array(bytes[..<end])])
            let complete = end >= bytes.count - lines[20].count - 1 ? 20 : 19
            let whole = end == bytes.count - 1 ? 21 : complete
            #expect(report.isIntact && report.last == UInt64(whole), "\(end)")
            let isWhole = [start, start + lines[19].count - 1, start + lines[19].count, bytes.count - 1].contains(end)
            #expect((report.cutBytes > 0) == !isWhole, "\(end)")
        }
        let report = AuditFixture.verify([bytes.dropLast(5)])
        #expect(report.lines.first?.hasSuffix("; the last line is cut after \(lines[20].count - 5) bytes") == true)
    }

    @Test func recordsAfterTheLastSignatureAreCounted() throws {
        let lines = try AuditFixture.lines()
        let report = AuditFixture.verify([Array(lines[..<30].joined())])
        #expect(report.isIntact && report.unsigned == 10 && !report.isEnded)
        #expect(report.lines.contains { $0.hasSuffix("up to record 20; 10 records after it not signed yet") })
        #expect(report.lines.last?.hasPrefix("records after 30 that were removed cannot be missed") == true)
    }

    @Test func withoutAKeyOnlyTheChainIsVerified() throws {
        var lines = try AuditFixture.lines()
        Tampering.replace("default", "another", in: &lines[6])
        Tampering.rechain(&lines, from: 6)
        let report = AuditFixture.verify([Array(lines.joined())], key: nil)
        #expect(report.isIntact)
        #expect(report.lines.contains { $0.contains("are not verified, because no public key is given") })
    }

    @Test func removedSignaturesAreMissed() throws {
        var chain = AuditChain()
        var bytes = chain.begin(at: AuditFixture.time(0))
        for number in 2...2000 { bytes += chain.use(AuditFixture.use(number)) }
        #expect(AuditFixture.verify([bytes]).fault == nil)
        bytes += chain.use(AuditFixture.use(2001))
        #expect(AuditFixture.verify([bytes]).fault?.kind == .unsigned)
        #expect(AuditFixture.verify([bytes], key: nil).fault == nil)
    }

    @Test func aClockThatIsSetBackIsNoted() throws {
        var chain = AuditChain()
        var bytes = chain.begin(at: AuditFixture.time(100))
        for seconds in [101, 100, -3600, -3599, 1_000_000] as [Int64] {
            var use = AuditFixture.use(1)
            use.time = AuditFixture.time(seconds)
            bytes += chain.use(use)
        }
        let report = AuditFixture.verify([bytes])
        #expect(report.isIntact && report.clockSetBack == [4])
        #expect(report.lines.contains("the clock was set back before record 4"))
    }

    @Test func filesFollowEachOther() throws {
        var chain = AuditChain()
        var first = chain.begin(at: AuditFixture.time(0)) + chain.use(AuditFixture.use(2))
        first += try chain.signed(at: AuditFixture.time(3), key: AuditFixture.key, isEnd: true)
        let second = chain.continue(at: AuditFixture.time(4), after: nil) + chain.use(AuditFixture.use(5))
        let third = chain.continue(at: AuditFixture.time(6), after: nil) + chain.use(AuditFixture.use(7))
        #expect(AuditFixture.verify([first, second, third]).records == 7)
        let rest = AuditFixture.verify([second, third])
        #expect(rest.isIntact && rest.startsAfter == 3)
        #expect(rest.lines.contains("continues an earlier file, after its record 3"))
        func fault(_ files: [[UInt8]]) -> AuditFault? { AuditFixture.verify(files).fault }
        #expect(fault([first, third])?.kind == .removed && fault([first, third])?.file == "1")
        #expect(fault([second, first])?.kind == .unrelated)
        #expect(fault([first, second, second])?.kind == .misplaced)
        #expect(fault([first, Array(second.drop { $0 != 0x0A }.dropFirst())])?.kind == .headless)
        #expect(fault([first + second])?.kind == .misplaced)
        let torn = fault([first.dropLast(9), second])
        #expect(torn?.kind == .cut && torn?.file == "1" && torn?.record == 4)
    }

    @Test func nothingIsNoAudit() {
        #expect(!AuditFixture.verify([[]]).isIntact)
        #expect(AuditFixture.verify([[]]).lines.first == "empty: there is no record")
        #expect(AuditFixture.verify([[0x7B]]).lines.first == "empty: there is no record, only 1 bytes of one")
        #expect(AuditFixture.verify([[UInt8](repeating: 0, count: 2 << 20)]).fault?.kind == .malformed)
    }
}
