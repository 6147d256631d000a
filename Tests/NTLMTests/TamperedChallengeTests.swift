// SPDX-License-Identifier: Apache-2.0

import CountersignSPNEGO
import Testing

@testable import CountersignNTLM

/// ChallengeMessages that an attacker between the client and the server has modified.
@Suite struct TamperedChallengeTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
    }

    /// Messages that are malformed, or do not state the encoding of names.
    static let invalid: [Case] = truncated + headers + fields + pairs

    private static let valid = SpecVectors.challengeMessage

    private static func altered(_ what: String, at offset: Int, _ bytes: [UInt8]) -> Case {
        var message = valid
        message.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        return Case(testDescription: what, bytes: message)
    }

    private static let truncated = valid.indices.map {
        Case(testDescription: "cut to \($0) bytes", bytes: Array(valid.prefix($0)))
    }

    private static let headers: [Case] =
        (0..<12).map { altered("byte \($0) of signature or type", at: $0, [valid[$0] ^ 0x20]) }
        + [
            altered("no flags", at: 20, [0, 0, 0, 0]),
            altered(
                "no encoding", at: 20,
                SpecVectors.challengeFlags.subtracting([.unicode, .oem]).rawValue.littleEndianBytes),
            Case(
                testDescription: "64 KiB and a byte", bytes: valid + [UInt8](repeating: 0, count: 65_537 - valid.count)),
            Case(testDescription: "1 MiB", bytes: valid + [UInt8](repeating: 0, count: 1 << 20)),
        ]

    private static let fields: [Case] =
        [12, 40].flatMap { field -> [Case] in
            let offsets: [UInt32] = [
                0, 1, 8, 16, 24, 31, 32, 40, 47, UInt32(valid.count) - 1, UInt32(valid.count), 0xFFFF, 0x1_0000,
                0x7FFF_FFFF,
                0x8000_0000,
                0xFFFF_FF00, 0xFFFF_FFFF,
            ]
            return offsets.map { altered("field \(field) at offset \($0)", at: field + 4, $0.littleEndianBytes) }
                + ([0x8000, 0xFFFF, 0xFFFE] as [UInt16]).map {
                    altered("field \(field) of \($0) bytes", at: field, $0.littleEndianBytes)
                }
        } + [
            altered("target info over target name", at: 44, valid[16..<20] + [])
        ]
        + (1..<36).filter { ![16, 32].contains($0) }.map {
            altered("target info of \($0) bytes", at: 40, [UInt8($0), 0])
        }

    private static let pairs: [Case] = [
        ("an overrun", "02000c00 4400"), ("an odd name", "0200 0100 44 00000000"),
        ("short flags", "0600 0100 00 00000000"),
        ("a short time", "0700 0400 00000000 00000000"), ("an end with a value", "0000 0400 00000000"),
        ("three bytes", "000000"),
        ("short bindings", "0a00 0800 0000000000000000 00000000"),
    ].map { what, digits in
        let info = hex(digits)
        var message = Array(valid.dropLast(SpecVectors.targetInfo.count)) + info
        message.replaceSubrange(40..<42, with: UInt16(truncatingIfNeeded: info.count).littleEndianBytes)
        return Case(testDescription: what, bytes: message)
    }

    @Test func thereAreEnoughOfThem() {
        #expect(Self.invalid.count >= 200)
        #expect(!Self.invalid.contains { $0.bytes == Self.valid })
    }

    @Test func theUntamperedOneIsAnswered() throws {
        for framing in [NTLMContext.Framing.raw, .spnego] {
            var dialogue = try Dialogue(framing)
            _ = dialogue.client.negotiate()
            #expect(try !dialogue.answer(Self.valid).isEmpty)
        }
    }

    @Test(arguments: invalid)
    func noneIsAnswered(_ tampered: Case) throws {
        let wrapped = NegTokenResp(
            negState: .acceptIncomplete, supportedMech: MechanismOID.ntlm, responseToken: tampered.bytes
        ).serialized
        for (framing, token) in [
            (NTLMContext.Framing.raw, tampered.bytes), (.spnego, wrapped), (.spnego, tampered.bytes),
        ] {
            var dialogue = try Dialogue(framing)
            _ = dialogue.client.negotiate()
            let error = #expect(throws: NTLMError.self) { try dialogue.answer(token) }
            #expect(error?.code == .malformed || error?.code == .unsupported)
        }
    }

    /// A modified message that is still valid may be answered, but the server that sent the original never accepts the
    /// answer.
    @Test func aFlippedBitIsFoundByTheServer() throws {
        var dialogue = try Dialogue()
        let challenge = try dialogue.challenge()
        var (refused, answered) = (0, 0)
        for bit in 0..<8 * challenge.count {
            var altered = challenge
            altered[bit / 8] ^= 1 << (bit % 8)
            var attempt = dialogue
            guard let answer = try? attempt.answer(altered) else {
                refused += 1
                continue
            }
            answered += 1
            #expect(throws: NTLMError.self, "bit \(bit)") { try attempt.verify(answer) }
        }
        #expect(refused > 0)
        #expect(answered > 0)
        #expect(try dialogue.verify(try dialogue.answer(challenge)).user == "jdoe")
    }
}
