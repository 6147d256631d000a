// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignSPNEGO

@Suite struct NegTokenTests {
    private static let spnego = "06062b0601050502"
    private static let ntlm = "060a2b06010401823702020a"
    private static let kerberos = "06092a864886f712010202"

    /// Encoded by pyspnego.
    @Test func initOffersNTLMAlone() throws {
        let token = NegTokenInit(mechTypes: [MechanismOID.ntlm], mechToken: [0xAA, 0xBB])
        #expect(token.serialized == hex("6022 \(Self.spnego) a018 3016 a00e 300c \(Self.ntlm) a204 0402aabb"))
        #expect(try NegTokenInit(parsing: token.serialized) == token)
        #expect(token.mechTypeList == hex("300c" + Self.ntlm))
    }

    /// Encoded by pyspnego: with reqFlags and mechListMIC, and with negHints.
    @Test(
        arguments: [
            ("6036 \(spnego) a02c 302a a019 3017 \(kerberos) \(ntlm) a104 03020006 a202 0400 a303 040101", []),
            ("6037 \(spnego) a02d 302b a019 3017 \(kerberos) \(ntlm) a203 040105 a309 3007a0051b036e6f74", [5]),
        ] as [(String, [UInt8])])
    func initOfAClientWithMoreToOfferIsRead(digits: String, mechToken: [UInt8]) throws {
        let token = try NegTokenInit(parsing: hex(digits))
        #expect(token.mechTypes.count == 2)
        #expect(token.mechTypes.last == MechanismOID.ntlm)
        #expect(token.mechToken == mechToken)
    }

    @Test(arguments: [
        NegTokenResp(negState: .acceptIncomplete, responseToken: [1, 2, 3]),
        NegTokenResp(negState: .acceptCompleted, responseToken: nil),
        NegTokenResp(negState: .reject, supportedMech: MechanismOID.ntlm, responseToken: []),
        NegTokenResp(
            negState: .requestMIC, supportedMech: MechanismOID.ntlm,
            responseToken: [UInt8](repeating: 7, count: 127), mechListMIC: [1]),
        NegTokenResp(negState: nil, responseToken: [UInt8](repeating: 7, count: 128)),
        NegTokenResp(negState: nil, responseToken: [UInt8](repeating: 7, count: 256), mechListMIC: []),
        NegTokenResp(negState: nil, responseToken: [UInt8](repeating: 7, count: 65_536)),
    ])
    func respComesBack(token: NegTokenResp) throws {
        #expect(try NegTokenResp(parsing: token.serialized) == token)
    }

    @Test func respIsDER() {
        let token = NegTokenResp(
            negState: .acceptIncomplete, supportedMech: MechanismOID.ntlm, responseToken: [0xAA], mechListMIC: [0xBB])
        #expect(token.serialized == hex("a11f 301d a003 0a0101 a10c \(Self.ntlm) a203 0401aa a303 0401bb"))
    }

    @Test(arguments: [
        ("nothing", ""), ("a tag alone", "a1"), ("wrong tag", "a207 3005 a003 0a0101"),
        ("an integer for a state", "a107 3005 a003 020101"), ("no such state", "a107 3005 a003 0a0104"),
        ("state of two bytes", "a108 3006 a004 0a020001"), ("state of none", "a106 3004 a002 0a00"),
        ("behind the end", "a107 3005 a003 0a0101 00"), ("behind the sequence", "a108 3005 a003 0a0101 00"),
        ("inside the wrapper", "a108 3006 a004 0a010100"), ("twice", "a10c 300a a003 0a0101 a003 0a0101"),
        ("out of order", "a10c 300a a203 0401aa a003 0a0101"), ("unknown field", "a107 3005 a503 0a0101"),
        ("indefinite length", "a180 3005 a003 0a0101 0000"), ("longer length", "a18107 3005 a003 0a0101"),
        ("leading zero", "a1820007 3005 a003 0a0101"), ("overrun", "a108 3005 a003 0a0101"),
        ("inner overrun", "a107 3006 a003 0a0101"), ("innermost overrun", "a107 3005 a003 0a0201"),
        ("length of 8 bytes", "a188ffffffffffffffff 3005"), ("length of 127 bytes", "a1ff 3005 a003 0a0101"),
        ("length cut", "a182 30"), ("length of 4 bytes", "a18400000007 3005 a003 0a0101"),
    ])
    func anythingElseIsMalformed(fault: String, digits: String) {
        #expect(throws: SPNEGOError(.malformed, ""), "\(fault)") { try NegTokenResp(parsing: hex(digits)) }
    }

    @Test func everyTruncationIsRefused() {
        let tokens = (
            NegTokenInit(mechTypes: [MechanismOID.ntlm], mechToken: [UInt8](repeating: 1, count: 130)).serialized,
            NegTokenResp(
                negState: .acceptCompleted, supportedMech: MechanismOID.ntlm,
                responseToken: [UInt8](repeating: 1, count: 130), mechListMIC: [1]
            ).serialized
        )
        for count in tokens.0.indices {
            #expect(throws: SPNEGOError(.malformed, "")) { try NegTokenInit(parsing: Array(tokens.0.prefix(count))) }
        }
        for count in tokens.1.indices {
            #expect(throws: SPNEGOError(.malformed, "")) { try NegTokenResp(parsing: Array(tokens.1.prefix(count))) }
        }
    }

    @Test func aLongLengthHasNoLeadingZero() {
        let content = NegTokenResp(negState: nil, responseToken: [UInt8](repeating: 7, count: 200)).serialized
            .dropFirst(3)
        let count = UInt8(content.count)
        #expect(throws: Never.self) { try NegTokenResp(parsing: [0xA1, 0x81, count] + content) }
        #expect(throws: SPNEGOError(.malformed, "")) { try NegTokenResp(parsing: [0xA1, 0x82, 0, count] + content) }
    }

    @Test func aTokenHasABound() {
        let fits = NegTokenResp(
            negState: nil, responseToken: [UInt8](repeating: 0, count: NegTokenInit.limitBytes - 20))
        #expect(fits.serialized.count == NegTokenInit.limitBytes)
        #expect(throws: Never.self) { try NegTokenResp(parsing: fits.serialized) }
        var above = fits
        above.responseToken?.append(0)
        #expect(throws: SPNEGOError(.malformed, "")) { try NegTokenResp(parsing: above.serialized) }
    }

    @Test func anotherMechanismsInitialTokenIsUnsupported() {
        let kerberos = hex("600d \(Self.kerberos) 0100")
        #expect(throws: SPNEGOError(.unsupported, "")) { try NegTokenInit(parsing: kerberos) }
    }
}

private func hex(_ digits: String) -> [UInt8] {
    Hex.decode(digits.filter { $0 != " " }) ?? []
}
