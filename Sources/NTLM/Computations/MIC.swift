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
}
