// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What a vault may hold.
package enum VaultLimits {
    package static let fileBytes = 16 << 20
    package static let records = 10_000
    package static let nameBytes = 128
    package static let userBytes = 1024
    package static let hostBytes = 253
    package static let passwordBytes = 16 << 10
    package static let keyBytes = 64 << 10
    /// Half of what 64 bits count, so that adding to a generation that was read cannot overflow.
    static let generation = UInt64(Int64.max)
    static let keyFileBytes = 4096
    static let digestBytes = 32

    /// Whether a record may have that name: 1 to 128 of `A–Z a–z 0–9 . _ - @ +`, the first a letter or digit, so that it
    /// is also a file name and a word of the allowed-sites list.
    package static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, isAlphanumeric(first), name.utf8.count <= nameBytes else { return false }
        return name.utf8.allSatisfy { isAlphanumeric($0) || ".-_@+".utf8.contains($0) }
    }

    static func check(name: String) throws(VaultError) {
        guard isName(name) else {
            throw VaultError(
                .invalidRecord, "\(name.debugDescription) is not a name",
                hint: "1 to \(nameBytes) letters, digits and . _ - @ +, a letter or digit first")
        }
    }

    /// Whether a record may be for that host: 1 to 253 bytes of `a–z 0–9 - . _`, or an IPv6 address without brackets. That it
    /// is the one spelling of the host is its maker's to see to.
    package static func isHost(_ host: some StringProtocol) -> Bool {
        (1...hostBytes).contains(host.utf8.count)
            && host.utf8.allSatisfy { isAlphanumeric($0) && !(0x41...0x5A).contains($0) || "-._:".utf8.contains($0) }
    }

    /// Whether a credential may be for that user: 1 to 1,024 bytes without control characters.
    package static func isUser(_ user: some StringProtocol) -> Bool {
        (1...userBytes).contains(user.utf8.count) && !user.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    static func check(user: String) throws(VaultError) {
        guard isUser(user) else {
            throw VaultError(
                .invalidRecord, "the user name is empty, longer than \(userBytes) bytes, or has a control character")
        }
    }

    static func check(_ secret: Secret, _ what: String, upTo limit: Int) throws(VaultError) {
        guard (1...limit).contains(secret.count) else {
            throw VaultError(.invalidRecord, "the \(what) is empty or longer than \(limit) bytes")
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }
}
