// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The message integrity code, which covers the three messages of a dialogue, so that no flag, name or binding in them
/// can be changed in transit. MS-NLMP §3.1.5.1.2.
package enum MIC {
    package static let lengthBytes = 16

    /// HMAC-MD5 over the three messages as sent. The MIC field of `authenticate` must contain zeros.
    package static func compute(
        exportedSessionKey: Secret, negotiate: [UInt8], challenge: [UInt8], authenticate: [UInt8]
    ) -> [UInt8] {
        exportedSessionKey.withBytes { Digest.md5.hmac(negotiate + challenge + authenticate, key: $0) }
    }

    /// Returns `authenticate` with `mic` in its MIC field.
    package static func write(_ mic: [UInt8], into authenticate: [UInt8]) -> [UInt8] {
        var message = authenticate
        let field = AuthenticateMessage.micOffset..<AuthenticateMessage.micOffset + lengthBytes
        message.replaceSubrange(field, with: mic)
        return message
    }
}
