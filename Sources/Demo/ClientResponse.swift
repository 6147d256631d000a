// SPDX-License-Identifier: Apache-2.0

import CountersignNTLM

/// The client's input to the proof in an NTLMv2_RESPONSE. MS-NLMP §2.2.2.7 and §2.2.2.8.
struct ClientResponse: Equatable, Sendable {
    private static let headerBytes = 28

    /// The NTLMv2_CLIENT_CHALLENGE, byte for byte.
    let temp: [UInt8]
    /// FILETIME.
    let time: UInt64
    /// 8 bytes.
    let clientChallenge: [UInt8]
    let targetInfo: TargetInfo

    init(parsing bytes: [UInt8]) throws(NTLMError) {
        guard bytes.count > NTLMv2.proofBytes + Self.headerBytes else {
            throw NTLMError(.unsupported, "a response of \(bytes.count) bytes is not NTLMv2")
        }
        temp = Array(bytes.dropFirst(NTLMv2.proofBytes))
        guard temp[0] == 1, temp[1] == 1 else {
            throw NTLMError(.unsupported, "a response of version \(temp[0]) is not NTLMv2")
        }
        time = temp[8..<16].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        clientChallenge = Array(temp[16..<24])
        var rest = temp[Self.headerBytes...]
        targetInfo = try TargetInfo(takingFrom: &rest)
        guard rest.allSatisfy({ $0 == 0 }) else {
            throw NTLMError(.malformed, "the \(rest.count) bytes after the target info of a response are not all zero")
        }
    }
}

extension TargetInfo {
    /// Whether the client announces that its message contains a MIC.
    var announcesMIC: Bool {
        flags & Self.micProvided != 0
    }
}
