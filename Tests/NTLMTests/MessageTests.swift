// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignNTLM

@Suite struct NegotiateMessageTests {
    @Test func ownMessageHas40BytesAndNamesNobody() throws {
        let message = NegotiateMessage(flags: .client, version: .own)
        #expect(
            message.serialized
                == hex("4e544c4d53535000 01000000 158288e2 0000000000000000 0000000000000000 0a0000000000000f"))
        #expect(try NegotiateMessage(parsing: message.serialized) == message)
    }

    @Test func messagesOfOtherLengthsAreRead() throws {
        let flags = NegotiateFlags.client.subtracting(.version)
        let short = NegotiateMessage(flags: flags, version: nil).serialized
        #expect(short.count == 32)
        #expect(try NegotiateMessage(parsing: short).flags == flags)
        #expect(try NegotiateMessage(parsing: Array(short.prefix(16))).flags == flags)
    }

    @Test(arguments: 0..<16)
    func fewerThan16BytesAreRefused(count: Int) {
        let message = NegotiateMessage(flags: .client, version: .own).serialized
        #expect(throws: NTLMError(.malformed, "")) { try NegotiateMessage(parsing: Array(message.prefix(count))) }
    }

    @Test func aWorkstationOutsideOfTheMessageIsRefused() {
        var message = NegotiateMessage(flags: .client, version: .own).serialized
        message.replaceSubrange(24..<32, with: [1, 0, 1, 0, 40, 0, 0, 0])
        #expect(throws: NTLMError(.malformed, "")) { try NegotiateMessage(parsing: message) }
        #expect(throws: Never.self) { try NegotiateMessage(parsing: message + [0x41]) }
    }
}

@Suite struct ChallengeMessageTests {
    @Test func theSpecificationsMessageIsReadAndWritten() throws {
        let message = try ChallengeMessage(parsing: SpecVectors.challengeMessage)
        #expect(
            message
                == ChallengeMessage(
                    flags: SpecVectors.challengeFlags, serverChallenge: SpecVectors.serverChallenge,
                    targetName: "Server", targetInfo: try TargetInfo(parsing: SpecVectors.targetInfo),
                    version: Version(major: 6, minor: 0, build: 6000)))
        #expect(try message.serialized() == SpecVectors.challengeMessage)
    }

    @Test func theVersionMayBeMissing() throws {
        var message = try ChallengeMessage(parsing: SpecVectors.challengeMessage)
        message.flags.remove(.version)
        message.version = nil
        let bytes = try message.serialized()
        #expect(bytes.count == SpecVectors.challengeMessage.count - 8)
        #expect(try ChallengeMessage(parsing: bytes) == message)
    }

    @Test func aServerHasToSayHowItReadsNames() throws {
        var message = try ChallengeMessage(parsing: SpecVectors.challengeMessage)
        message.flags.subtract([.unicode, .oem])
        let bytes = try message.serialized()
        #expect(throws: NTLMError(.unsupported, "")) { try ChallengeMessage(parsing: bytes) }
    }

    /// Servers copy the client's flags.
    @Test func anAnnouncedVersionNeedsItsRoom() throws {
        let flags = SpecVectors.challengeFlags.rawValue.littleEndianBytes
        let header = Array(SpecVectors.challengeMessage[..<12]) + [0, 0, 0, 0, 48, 0, 0, 0] + flags
        for count in 4..<12 {
            let info = [UInt8](repeating: 0, count: 4)
            let padding = [UInt8](repeating: 0, count: count - 4)
            let message = header + [UInt8](repeating: 0, count: 16) + [4, 0, 4, 0, 48, 0, 0, 0] + info + padding
            let parsed = try ChallengeMessage(parsing: message)
            #expect(parsed.version == nil)
            #expect(try ChallengeMessage(parsing: try parsed.serialized()) == parsed)
        }
    }

    /// MS-NLMP §2.2.1.2: without its flag, the field is ignored.
    @Test func targetInfoWithoutItsFlagIsNotRead() throws {
        var message = try ChallengeMessage(parsing: SpecVectors.challengeMessage)
        message.flags.remove(.targetInfo)
        var bytes = try message.serialized()
        #expect(try ChallengeMessage(parsing: bytes).targetInfo == TargetInfo())
        bytes.replaceSubrange(40..<48, with: [UInt8](repeating: 0xFF, count: 8))
        #expect(try ChallengeMessage(parsing: bytes).targetInfo == TargetInfo())
    }

    @Test func anEmptyFieldMayPointAnywhere() throws {
        var bytes = SpecVectors.challengeMessage
        bytes.replaceSubrange(12..<20, with: [0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(try ChallengeMessage(parsing: bytes).targetName == [])
    }

    @Test func aMessageHasAtMost64KiB() throws {
        let padding = [UInt8](repeating: 0, count: 65_536 - SpecVectors.challengeMessage.count)
        #expect(throws: Never.self) { try ChallengeMessage(parsing: SpecVectors.challengeMessage + padding) }
        #expect(throws: NTLMError(.malformed, "")) {
            try ChallengeMessage(parsing: SpecVectors.challengeMessage + padding + [0])
        }
    }
}

@Suite struct AuthenticateMessageTests {
    private static let message = AuthenticateMessage(
        flags: NegotiateFlags(rawValue: 0xE288_8235), lmChallengeResponse: SpecVectors.lmChallengeResponse,
        ntChallengeResponse: SpecVectors.proof + SpecVectors.temp, domain: SpecVectors.domain, user: SpecVectors.user,
        workstation: SpecVectors.workstation, encryptedRandomSessionKey: SpecVectors.encryptedSessionKey,
        version: Version(major: 5, minor: 1, build: 2600), mic: nil)

    @Test func theSpecificationsMessageIsReadAndWritten() throws {
        #expect(try Self.message.serialized() == SpecVectors.authenticateMessage)
        #expect(try AuthenticateMessage(parsing: SpecVectors.authenticateMessage) == Self.message)
    }

    @Test func theMICLiesAt72() throws {
        var message = Self.message
        message.mic = Array(1...16)
        let bytes = try message.serialized()
        #expect(Array(bytes[72..<88]) == Array(1...16))
        #expect(Array(bytes[..<12]) == Array(SpecVectors.authenticateMessage[..<12]))
        #expect(try AuthenticateMessage(parsing: bytes) == message)
    }

    @Test(arguments: 0..<SpecVectors.authenticateMessage.count)
    func everyTruncationIsRefused(count: Int) {
        let bytes = Array(SpecVectors.authenticateMessage.prefix(count))
        #expect(throws: NTLMError(.malformed, "")) { try AuthenticateMessage(parsing: bytes) }
    }

    @Test(arguments: [12, 20, 28, 36, 44, 52])
    func everyFieldIsHeldInsideTheMessage(field: Int) {
        for offset in [0, 63, UInt32(SpecVectors.authenticateMessage.count), 0x7FFF_FFFF, 0xFFFF_FFFF] {
            var bytes = SpecVectors.authenticateMessage
            bytes.replaceSubrange(field + 4..<field + 8, with: offset.littleEndianBytes)
            #expect(throws: NTLMError(.malformed, "")) { try AuthenticateMessage(parsing: bytes) }
        }
    }

    @Test func fieldsDoNotOverlap() {
        var bytes = SpecVectors.authenticateMessage
        bytes[32] = bytes[40]
        #expect(throws: NTLMError(.malformed, "")) { try AuthenticateMessage(parsing: bytes) }
    }

    @Test(arguments: [NegotiateFlags.oem, []])
    func withoutUnicodeNamesAreASCII(encoding: NegotiateFlags) throws {
        var message = Self.message
        message.flags.subtract([.unicode, .oem])
        message.flags.formUnion(encoding)
        let bytes = try message.serialized()
        #expect(Array(bytes[72..<90]) == Array("DomainUserCOMPUTER".utf8))
        #expect(Array(bytes[36..<44]) == [4, 0, 4, 0, 78, 0, 0, 0])
        for name in [\AuthenticateMessage.domain, \.user, \.workstation] {
            var other = message
            other[keyPath: name] += "\u{E9}"
            #expect(throws: NTLMError(.unusableCredential, "")) { try other.serialized() }
        }
    }

    @Test func aUserNameHasAtMost65535Bytes() throws {
        var message = Self.message
        message.user = String(repeating: "u", count: 32_767)
        #expect(throws: Never.self) { try message.serialized() }
        message.user += "u"
        #expect(throws: NTLMError(.unusableCredential, "")) { try message.serialized() }
    }
}
