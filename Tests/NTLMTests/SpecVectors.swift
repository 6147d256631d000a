// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignNTLM

/// The example of MS-NLMP §4.2.1 (common values) and §4.2.4 (NTLMv2). pyspnego 0.12.4 computes the same values.
enum SpecVectors {
    static let user = "User"
    static let domain = "Domain"
    static let workstation = "COMPUTER"
    static let password = "Password"
    static let serverChallenge = hex("0123456789abcdef")
    static let clientChallenge = hex("aaaaaaaaaaaaaaaa")
    static let randomSessionKey = hex("55555555555555555555555555555555")
    static let targetInfo = hex("02000c0044006f006d00610069006e0001000c00530065007200760065007200 00000000")
    static let challengeFlags = NegotiateFlags(rawValue: 0xE28A_8233)

    // §4.2.4.1
    static let responseKey = hex("0c868a403bfd7a93a3001ef22ef02e3f")
    static let temp = hex("01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000") + targetInfo + hex("00000000")
    static let sessionBaseKey = hex("8de40ccadbc14a82f15cb0ad0de95ca3")
    // §4.2.4.2
    static let lmChallengeResponse = hex("86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa")
    static let proof = hex("68cd0ab851e51c96aabc927bebef6a1c")
    static let encryptedSessionKey = hex("c5dad2544fc9799094ce1ce90bc9d03e")

    // §4.2.4.3
    static let challengeMessage =
        hex("4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef")
        + hex("00000000000000002400240044000000060070170000000f530065007200760065007200") + targetInfo
    static let authenticateMessage =
        hex("4e544c4d5353500003000000180018006c00000054005400840000000c000c00")
        + hex("480000000800080054000000100010005c00000010001000d8000000358288e2")
        + hex("0501280a0000000f44006f006d00610069006e00550073006500720043004f00")
        + hex("4d0050005500540045005200") + lmChallengeResponse + proof + temp + encryptedSessionKey

    // §4.2.4.4
    static let authenticateFlags = NegotiateFlags(rawValue: 0xE288_8235)
    static let sealKey = hex("59f600973cc4960a25480a7c196e4c58")
    static let signKey = hex("4788dc861b4782f35d43fd98fe1a2d39")
    static let sealedPlaintext = hex("54e50165bf1936dc996020c1811b0f06fb5f")
    static let signature = hex("010000007fb38ec5c55d497600000000")
}

/// Decodes `digits`, ignoring spaces.
func hex(_ digits: String) -> [UInt8] {
    Hex.decode(digits.filter { $0 != " " }) ?? []
}

extension Secret {
    var bytes: [UInt8] { withBytes { Array($0) } }
}
