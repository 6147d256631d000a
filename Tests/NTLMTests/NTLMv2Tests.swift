// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignNTLM

@Suite struct NTLMv2Tests {
    private static func respond(time: UInt64 = 0) -> NTLMv2.Response {
        NTLMv2.computeResponse(
            responseKey: Secret(SpecVectors.responseKey), serverChallenge: SpecVectors.serverChallenge,
            clientChallenge: SpecVectors.clientChallenge, time: time, targetInfo: SpecVectors.targetInfo)
    }

    @Test func responseKeyOfTheSpecification() throws {
        let key = try NTLMv2.ntowfv2(
            password: Secret(utf8: SpecVectors.password), user: SpecVectors.user, domain: SpecVectors.domain)
        #expect(key == Secret(SpecVectors.responseKey))
    }

    @Test func theUserNameIsFoldedAndTheDomainIsNot() throws {
        let password = Secret(utf8: SpecVectors.password)
        let key = Secret(SpecVectors.responseKey)
        #expect(try NTLMv2.ntowfv2(password: password, user: "uSER", domain: "Domain") == key)
        #expect(try NTLMv2.ntowfv2(password: password, user: "User", domain: "DOMAIN") != key)
    }

    /// Computed with pyspnego's ntowfv2.
    @Test(arguments: Fixture.responseKeys)
    func responseKeysOfAForeignImplementation(user: String, domain: String, password: String, key: String) throws {
        #expect(
            Hex.encode(try NTLMv2.ntowfv2(password: Secret(utf8: password), user: user, domain: domain).bytes) == key)
    }

    @Test(arguments: [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0x61, 0xE2, 0x82]] as [[UInt8]])
    func aPasswordThatIsNotUTF8IsRefused(bytes: [UInt8]) {
        #expect(throws: NTLMError(.unusableCredential, "")) {
            try NTLMv2.ntowfv2(password: Secret(bytes), user: "u", domain: "")
        }
    }

    @Test func responsesOfTheSpecification() {
        let response = Self.respond()
        #expect(response.ntChallengeResponse == SpecVectors.proof + SpecVectors.temp)
        #expect(response.lmChallengeResponse == SpecVectors.lmChallengeResponse)
        #expect(response.sessionBaseKey == Secret(SpecVectors.sessionBaseKey))
    }

    @Test func timeIsEightLittleEndianBytes() {
        #expect(
            Array(Self.respond(time: 0x0102_0304_0506_0708).ntChallengeResponse[24..<32]) == [8, 7, 6, 5, 4, 3, 2, 1])
    }

    @Test func encryptedSessionKeyOfTheSpecification() {
        var rc4 = RC4(key: Self.respond().sessionBaseKey)
        #expect(rc4.apply(SpecVectors.randomSessionKey) == SpecVectors.encryptedSessionKey)
    }

    /// Computed with pyspnego's GssChannelBindings.
    @Test(arguments: Fixture.channelBindingHashes)
    func channelBindingsAreHashedAsAStructure(applicationData: String, hash: String) {
        #expect(Hex.encode(NTLMv2.channelBindingsHash(applicationData: hex(applicationData))) == hash)
    }

    /// The expected MIC was computed by another implementation over the messages of the specification; the bytes in the
    /// MIC field are used unchanged.
    @Test func micCoversTheThreeMessagesInOrder() {
        let key = Secret(SpecVectors.randomSessionKey)
        let mic = MIC.compute(
            exportedSessionKey: key, negotiate: [1, 2], challenge: SpecVectors.challengeMessage,
            authenticate: SpecVectors.authenticateMessage)
        #expect(Hex.encode(mic) == Fixture.micOfSpecMessages)
    }
}

@Suite struct RC4Tests {
    /// RFC 6229 §2: the key stream at three offsets.
    @Test(arguments: Fixture.rc4Streams)
    func keyStreamsOfTheRFC(key: String, offset: Int, stream: String) {
        var rc4 = RC4(key: Secret(hex(key)))
        _ = rc4.apply([UInt8](repeating: 0, count: offset))
        #expect(Hex.encode(rc4.apply([UInt8](repeating: 0, count: 16))) == stream)
    }

    @Test func applyingTwiceGivesTheBytesBack() {
        var (there, back) = (RC4(key: Secret([1, 2, 3])), RC4(key: Secret([1, 2, 3])))
        let bytes = Array(UInt8.min...UInt8.max)
        let encrypted = there.apply(Array(bytes[..<7])) + there.apply(Array(bytes[7...]))
        #expect(encrypted != bytes)
        #expect(back.apply(encrypted) == bytes)
    }
}

@Suite struct SessionSecurityTests {
    private let key = Secret(SpecVectors.randomSessionKey)

    @Test func keysOfTheSpecification() {
        let signKey = SessionSecurity.signKey(exportedSessionKey: key, direction: .clientToServer)
        let sealKey = SessionSecurity.sealKey(
            flags: SpecVectors.authenticateFlags, exportedSessionKey: key, direction: .clientToServer)
        #expect(signKey.bytes == SpecVectors.signKey)
        #expect(sealKey.bytes == SpecVectors.sealKey)
    }

    /// Computed with pyspnego's sealkey and signkey.
    @Test func weakerAndOppositeKeysOfAForeignImplementation() {
        func sealKey(_ removed: NegotiateFlags, _ direction: SessionSecurity.Direction) -> String {
            let flags = SpecVectors.authenticateFlags.subtracting(removed)
            return Hex.encode(
                SessionSecurity.sealKey(flags: flags, exportedSessionKey: key, direction: direction).bytes)
        }
        #expect(sealKey(.negotiate128, .clientToServer) == "a5f7253c1065e8d3d68642040e71cfe0")
        #expect(sealKey(.negotiate128, .serverToClient) == "583e2f98959b385cd158f3734b5f5d3f")
        #expect(sealKey([.negotiate128, .negotiate56], .clientToServer) == "42f964a471091a02ff4a77455366e4e5")
        #expect(sealKey([.negotiate128, .negotiate56], .serverToClient) == "c5d3853b406b7c1241c595f0ce0750e2")
        let signKey = SessionSecurity.signKey(exportedSessionKey: key, direction: .serverToClient)
        #expect(Hex.encode(signKey.bytes) == "d04d6f10741041d1d246d64188d7a8ad")
    }

    @Test func sealedAndSignedMessageOfTheSpecification() {
        var security = SessionSecurity(
            flags: SpecVectors.authenticateFlags, exportedSessionKey: key, direction: .clientToServer)
        let plaintext = UTF16Text.encode("Plaintext")
        #expect(security.seal(plaintext) == SpecVectors.sealedPlaintext)
        #expect(security.mac(plaintext) == SpecVectors.signature)
    }

    @Test func eachSignatureCarriesItsNumber() {
        var security = SessionSecurity(
            flags: SpecVectors.authenticateFlags, exportedSessionKey: key, direction: .clientToServer)
        let signatures = (0..<3).map { _ in security.mac([1]) }
        #expect(signatures.map { Array($0.suffix(4)) } == [[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0]])
        #expect(Set(signatures.map { Array($0[4..<12]) }).count == 3)
    }

    @Test func withoutKeyExchangeTheChecksumIsNotEncrypted() {
        var security = SessionSecurity(
            flags: SpecVectors.authenticateFlags.subtracting(.keyExchange), exportedSessionKey: key,
            direction: .clientToServer)
        let checksum = Digest.md5.hmac([0, 0, 0, 0, 7], key: SpecVectors.signKey).prefix(8)
        #expect(security.mac([7]) == [1, 0, 0, 0] + checksum + [0, 0, 0, 0])
    }
}
