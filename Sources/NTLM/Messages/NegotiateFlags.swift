// SPDX-License-Identifier: Apache-2.0

/// The negotiated options, one bit each; 4 bytes, little-endian. MS-NLMP §2.2.2.5.
package struct NegotiateFlags: OptionSet, Equatable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let unicode = NegotiateFlags(rawValue: 0x0000_0001)
    package static let oem = NegotiateFlags(rawValue: 0x0000_0002)
    package static let requestTarget = NegotiateFlags(rawValue: 0x0000_0004)
    package static let sign = NegotiateFlags(rawValue: 0x0000_0010)
    package static let seal = NegotiateFlags(rawValue: 0x0000_0020)
    package static let lmKey = NegotiateFlags(rawValue: 0x0000_0080)
    package static let ntlm = NegotiateFlags(rawValue: 0x0000_0200)
    package static let anonymous = NegotiateFlags(rawValue: 0x0000_0800)
    package static let alwaysSign = NegotiateFlags(rawValue: 0x0000_8000)
    package static let targetTypeServer = NegotiateFlags(rawValue: 0x0002_0000)
    package static let extendedSessionSecurity = NegotiateFlags(rawValue: 0x0008_0000)
    package static let targetInfo = NegotiateFlags(rawValue: 0x0080_0000)
    package static let version = NegotiateFlags(rawValue: 0x0200_0000)
    package static let negotiate128 = NegotiateFlags(rawValue: 0x2000_0000)
    package static let keyExchange = NegotiateFlags(rawValue: 0x4000_0000)
    package static let negotiate56 = NegotiateFlags(rawValue: 0x8000_0000)

    /// The flags that an NTLMv2 client requests: a signing key for the MIC, but no encryption of later data.
    package static let client: NegotiateFlags = [
        .unicode, .requestTarget, .sign, .ntlm, .alwaysSign, .extendedSessionSecurity, .targetInfo, .version,
        .negotiate128, .keyExchange, .negotiate56,
    ]
}
