// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSPNEGO
import Testing

@testable import CountersignDemo
@testable import CountersignNTLM

/// ChallengeMessages of servers that send less than Windows does, or something else. Each is answered with NTLMv2, MIC,
/// channel binding and target name.
@Suite struct ToleratedChallengeMessageTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        /// The pairs of the server in the answer.
        var pairs: [AVPair] = []
        var flags: NegotiateFlags = .client
    }

    private static let domain = AVPair(.nbDomainName, text: "ACME")
    private static let server = AVPair(.nbComputerName, text: "SRV")
    private static let pairs = [domain, server, Dialogue.timestamp]
    private static let granted = NegotiateFlags.client.union(.targetTypeServer)
    private static let eol: [UInt8] = [0, 0, 0, 0]

    private static func encoded(_ pairs: [AVPair]) -> [UInt8] {
        pairs.flatMap { $0.id.rawValue.littleEndianBytes + UInt16($0.value.count).littleEndianBytes + $0.value }
    }

    /// A message with a version if `headerBytes` is 56, and without the later fields if it is 32.
    private static func message(
        _ flags: NegotiateFlags = granted, info: [UInt8], name: [UInt8] = UTF16Text.encode("ACME"),
        headerBytes: Int = 56
    ) -> [UInt8] {
        func field(_ bytes: [UInt8], at offset: Int) -> [UInt8] {
            let length = UInt16(bytes.count).littleEndianBytes
            return length + length + UInt32(offset).littleEndianBytes
        }
        var header = MessageReader.signature + UInt32(2).littleEndianBytes + field(name, at: headerBytes)
        header += flags.rawValue.littleEndianBytes + Dialogue.serverChallenge + [UInt8](repeating: 0, count: 8)
        header += field(info, at: headerBytes + name.count) + Version.own.serialized
        return header.prefix(headerBytes) + name + info
    }

    static let all: [Case] = [
        Case(testDescription: "nothing is wrong", bytes: message(info: encoded(pairs) + eol), pairs: pairs),
        Case(testDescription: "target info is empty", bytes: message(info: [])),
        Case(testDescription: "target info has only its end", bytes: message(info: eol)),
        Case(
            testDescription: "no target info and no flag", bytes: message(granted.subtracting(.targetInfo), info: []),
            flags: .client.subtracting(.targetInfo)),
        Case(
            testDescription: "target info without its flag",
            bytes: message(granted.subtracting(.targetInfo), info: encoded(pairs) + eol),
            flags: .client.subtracting(.targetInfo)),
        Case(
            testDescription: "no room for the fields of the flags", bytes: message(info: [], name: [], headerBytes: 32)),
        Case(testDescription: "no room for the version", bytes: message(info: [], name: [], headerBytes: 48)),
        Case(testDescription: "no version", bytes: message(info: encoded(pairs) + eol, headerBytes: 48), pairs: pairs),
        Case(testDescription: "no MsvAvEOL", bytes: message(info: encoded(pairs)), pairs: pairs),
        Case(
            testDescription: "bytes behind MsvAvEOL", bytes: message(info: encoded(pairs) + eol + [1, 2, 3]),
            pairs: pairs),
        Case(
            testDescription: "pairs behind MsvAvEOL", bytes: message(info: encoded([domain]) + eol + encoded([server])),
            pairs: [domain]),
        Case(
            testDescription: "a pair twice", bytes: message(info: encoded([domain, server, domain, server]) + eol),
            pairs: [domain, server]),
        Case(
            testDescription: "no extended session security",
            bytes: message(granted.subtracting(.extendedSessionSecurity), info: encoded(pairs) + eol), pairs: pairs,
            flags: .client.subtracting(.extendedSessionSecurity)),
        Case(
            testDescription: "OEM instead of Unicode",
            bytes: message(
                granted.subtracting(.unicode).union(.oem), info: encoded(pairs) + eol, name: Array("ACME".utf8)),
            pairs: pairs, flags: .client.subtracting(.unicode).union(.oem)),
        Case(
            testDescription: "OEM and Unicode", bytes: message(granted.union(.oem), info: encoded(pairs) + eol),
            pairs: pairs),
        Case(
            testDescription: "as little as possible", bytes: message([.oem, .ntlm], info: [], headerBytes: 32),
            flags: [.oem, .ntlm, .version]),
    ]

    /// The payload field at `offset` of an AuthenticateMessage.
    private static func field(_ message: [UInt8], at offset: Int) -> [UInt8] {
        func integer(_ range: Range<Int>) -> Int { message[range].reversed().reduce(0) { $0 << 8 | Int($1) } }
        let start = integer(offset + 4..<offset + 8)
        return Array(message[start..<start + integer(offset..<offset + 2)])
    }

    private static func check(_ answer: [UInt8], to example: Case) throws {
        let flags = NegotiateFlags(rawValue: answer[60..<64].reversed().reduce(0) { $0 << 8 | UInt32($1) })
        #expect(flags == example.flags)
        let encode: (String) -> [UInt8] = flags.contains(.unicode) ? { UTF16Text.encode($0) } : { Array($0.utf8) }
        #expect(field(answer, at: 28) == encode("ACME"))
        #expect(field(answer, at: 36) == encode("jdoe"))
        #expect(field(answer, at: 44) == encode("WS01"))

        let response = try ClientResponse(parsing: field(answer, at: 20))
        let binding = NTLMv2.channelBindingsHash(applicationData: Dialogue.binding.applicationData)
        let own = [
            AVPair(.flags, [2, 0, 0, 0]), AVPair(.channelBindings, binding),
            AVPair(.targetName, text: "HTTP/www.example"),
        ]
        #expect(response.targetInfo.pairs == example.pairs + own)
        #expect(response.time == (example.pairs.contains(Dialogue.timestamp) ? Dialogue.now + 5 : Dialogue.now))
        let key = try NTLMv2.ntowfv2(password: Secret(utf8: Dialogue.password), user: "jdoe", domain: "ACME")
        let expected = NTLMv2.response(
            to: Dialogue.serverChallenge, temp: response.temp, responseKey: key,
            clientChallenge: response.clientChallenge)
        #expect(field(answer, at: 20) == expected.ntChallengeResponse)
        let hasTime = example.pairs.contains(Dialogue.timestamp)
        #expect(
            field(answer, at: 12)
                == (hasTime ? [UInt8](repeating: 0, count: 24) : expected.lmChallengeResponse))

        var sessionKey = expected.sessionBaseKey
        if flags.isSuperset(of: [.sign, .keyExchange]) {
            var rc4 = RC4(key: sessionKey)
            sessionKey = Secret(rc4.apply(field(answer, at: 52)))
        }
        let zeros = [UInt8](repeating: 0, count: MIC.lengthBytes)
        let mic = MIC.compute(
            exportedSessionKey: sessionKey, negotiate: NegotiateMessage(flags: .client, version: .own).serialized,
            challenge: example.bytes, authenticate: AuthenticateMessage.write(zeros, into: answer))
        #expect(Array(answer[72..<88]) == mic)
    }

    @Test(arguments: all)
    func isAnsweredWithNTLMv2(_ example: Case) throws {
        var dialogue = try Dialogue()
        _ = dialogue.client.negotiate()
        try Self.check(try dialogue.answer(example.bytes), to: example)
    }

    @Test(arguments: all)
    func isAnsweredInSPNEGO(_ example: Case) throws {
        var dialogue = try Dialogue(.spnego)
        _ = dialogue.client.negotiate()
        let token = NegTokenResp(
            negState: .acceptIncomplete, supportedMech: MechanismOID.ntlm, responseToken: example.bytes)
        let answer = try NegTokenResp(parsing: try dialogue.answer(token.serialized))
        try Self.check(try #require(answer.responseToken), to: example)
        let signs = example.flags.isSuperset(of: [.sign, .extendedSessionSecurity])
        #expect((answer.mechListMIC != nil) == signs)
        // A signature that cannot be verified proves nothing, and one that can be is wrong here.
        let last = NegTokenResp(
            negState: .acceptCompleted, responseToken: nil, mechListMIC: [UInt8](repeating: 1, count: 16))
        if signs {
            #expect(throws: NTLMError(.wrongMIC, "")) { try dialogue.client.conclude(last.serialized) }
        } else {
            #expect(
                try dialogue.client.conclude(last.serialized)
                    == "it granted no extended session security to sign with")
        }
    }

    /// An OEM character set is not known, and only ASCII is part of all of them.
    @Test func aNameBeyondASCIICannotBeSentInOEM() throws {
        let oem = try #require(Self.all.first { $0.testDescription == "OEM instead of Unicode" })
        for (user, name) in [("ACME\\j\u{F6}rg", "user name"), ("\u{C4}CME\\jdoe", "domain")] {
            var dialogue = try Dialogue(user: user)
            _ = dialogue.client.negotiate()
            let error = #expect(throws: NTLMError.self) { try dialogue.answer(oem.bytes) }
            #expect(error?.code == .unusableCredential)
            #expect(
                error?.detail == "the server does not read Unicode, and the \(name) has characters other than ASCII")
        }
    }
}
