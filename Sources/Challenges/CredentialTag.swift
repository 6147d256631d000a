// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Identifies a user name and password, or a token, without revealing them: a keyed MAC. Two credentials with the same
/// user name and password, or the same token, have the same tag, regardless of their names and sources.
package struct CredentialTag: Hashable, Sendable {
    /// The number of bytes of ``bytes``.
    package static let length = 16

    private let high: UInt64
    private let low: UInt64

    /// HMAC-SHA-256 of the user name, ignoring case and its domain, and the password, shortened to 16 bytes. `jdoe`,
    /// `ACME\jdoe` and the principal `jdoe@ACME.EXAMPLE` may be one account of a directory, which counts their wrong
    /// passwords together.
    package init(user: String, password: Secret, key: Secret) {
        var message = Array(Self.account(of: user.lowercased()).utf8) + [0]
        password.withBytes { message += $0 }
        defer { message.wipe() }
        let mac = key.withBytes { Digest.sha256.hmac(message, key: $0) }
        high = Self.number(mac[0..<8])
        low = Self.number(mac[8..<16])
    }

    /// The user name without its domain.
    private static func account(of user: String) -> Substring {
        let parts = user.split(separator: "\\", omittingEmptySubsequences: false)
        let name = parts.count == 2 ? parts[1] : user[...].prefix { $0 != "@" }
        return name.isEmpty ? user[...] : name
    }

    /// The tag of a token. No user name is empty, so that no password has the same one.
    package init(token: Secret, key: Secret) {
        self.init(user: "", password: token, key: key)
    }

    /// A tag from its ``bytes``; nil unless there are exactly ``length``.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        high = Self.number(bytes[0..<8])
        low = Self.number(bytes[8..<16])
    }

    /// The tag, big-endian.
    package var bytes: [UInt8] {
        [high, low].flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
