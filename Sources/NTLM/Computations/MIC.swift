// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The message integrity code: ties the three messages of one dialogue together, so that no flag, name or binding in them
/// can be changed on the way. MS-NLMP §3.1.5.1.2.
package enum MIC {
    package static let lengthBytes = 16

    /// HMAC-MD5 over the three messages as they were sent, the MIC field of the third taken as zeros, which is the caller's
    /// to have seen to.
    package static func compute(
        exportedSessionKey: Secret, negotiate: [UInt8], challenge: [UInt8], authenticate: [UInt8]
    ) -> [UInt8] {
        exportedSessionKey.withBytes { Digest.md5.hmac(negotiate + challenge + authenticate, key: $0) }
    }

    /// `authenticate` with `mic` where the field is.
    package static func write(_ mic: [UInt8], into authenticate: [UInt8]) -> [UInt8] {
        var message = authenticate
        let field = AuthenticateMessage.micOffset..<AuthenticateMessage.micOffset + lengthBytes
        message.replaceSubrange(field, with: mic)
        return message
    }
}
