// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension OpenVault {
    /// The key that signs the audit of credentials' uses. It is derived from a key that stays the same when the vault
    /// is rekeyed, so that earlier audits can still be verified.
    package var auditKey: ES256Key {
        let tagKey = tagKey
        var counter: UInt8 = 0
        while true {
            let digest = tagKey.withBytes {
                Digest.sha256.hmac(Array("countersign audit key".utf8) + [counter], key: $0)
            }
            let scalar = Secret(count: digest.count) { $0.copyBytes(from: digest) }
            // All but one of 2³² numbers are private keys.
            if let key = ES256Key(scalar: scalar) { return key }
            counter += 1
        }
    }
}
