// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A person's decision to connect to an origin although its certificate does not verify. It applies to one host, port
/// and leaf certificate only.
package struct TrustExceptionRecord: Equatable, Sendable, Codable {
    /// Canonical, as `SitePolicy.HostName` writes it; an IPv6 address without brackets.
    package let host: String
    package let port: UInt16
    /// SHA-256 of the leaf certificate's DER, 32 bytes.
    package let leafSHA256: [UInt8]
    /// The last second at which the exception applies, since 1970; nil: until it is removed.
    package let until: Int64?
    /// Whether challenges may be answered as on an origin that verifies.
    package let answers: Bool
    /// When the exception was made, in seconds since 1970.
    package let made: Int64

    package init(host: String, port: UInt16, leafSHA256: [UInt8], until: Int64?, answers: Bool, made: Int64) {
        self.host = host
        self.port = port
        self.leafSHA256 = leafSHA256
        self.until = until
        self.answers = answers
        self.made = made
    }

    /// Whether the exception still applies; `now` is in seconds since 1970.
    package func counts(at now: Int64) -> Bool { until.map { now <= $0 } ?? true }

    /// Sorts by host, then port, then leaf: a space sorts before every character of a host.
    var order: String {
        "\(host) \(Hex.encode([UInt8(port >> 8), UInt8(port & 0xFF)])) \(Hex.encode(leafSHA256))"
    }

    /// Why the record cannot be stored; nil if it can.
    var fault: String? {
        guard VaultLimits.isHost(host) else { return "\(host.debugDescription) is not a canonical host" }
        guard port != 0 else { return "0 is not a port" }
        guard leafSHA256.count == VaultLimits.digestBytes else {
            return "a SHA-256 has 32 bytes, not \(leafSHA256.count)"
        }
        guard made >= 0, until.map({ $0 >= 0 }) ?? true else { return "a time before 1970" }
        return nil
    }
}
