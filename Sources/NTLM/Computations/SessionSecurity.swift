// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The keys for one direction of an authenticated session, and its signatures. Extended session security is always
/// required. Only SPNEGO's mechListMIC is signed. MS-NLMP §3.4.
package struct SessionSecurity: Sendable {
    package enum Direction: Sendable {
        case clientToServer
        case serverToClient

        fileprivate var words: String {
            switch self {
            case .clientToServer: "client-to-server"
            case .serverToClient: "server-to-client"
            }
        }
    }

    private let flags: NegotiateFlags
    private let signKey: Secret
    private var sealHandle: RC4
    private var sequenceNumber: UInt32 = 0

    package init(flags: NegotiateFlags, exportedSessionKey: Secret, direction: Direction) {
        self.flags = flags
        signKey = Self.signKey(exportedSessionKey: exportedSessionKey, direction: direction)
        sealHandle = RC4(key: Self.sealKey(flags: flags, exportedSessionKey: exportedSessionKey, direction: direction))
    }

    /// SIGNKEY, §3.4.5.2.
    static func signKey(exportedSessionKey: Secret, direction: Direction) -> Secret {
        derive(exportedSessionKey, keptBytes: exportedSessionKey.count, "\(direction.words) signing")
    }

    /// SEALKEY, §3.4.5.3: weakened to 56 or 40 bits if no stronger key was negotiated.
    static func sealKey(flags: NegotiateFlags, exportedSessionKey: Secret, direction: Direction) -> Secret {
        let keptBytes = flags.contains(.negotiate128) ? exportedSessionKey.count : flags.contains(.negotiate56) ? 7 : 5
        return derive(exportedSessionKey, keptBytes: keptBytes, "\(direction.words) sealing")
    }

    private static func derive(_ key: Secret, keptBytes: Int, _ purpose: String) -> Secret {
        let constant = Array("session key to \(purpose) key magic constant\0".utf8)
        return Secret(key.withBytes { Digest.md5.hash(Array($0.prefix(keptBytes)) + constant) })
    }

    /// The signature of `message` with the next sequence number, 16 bytes: version 1, checksum, number. §3.4.4.2.
    package mutating func mac(_ message: [UInt8]) -> [UInt8] {
        let number = sequenceNumber.littleEndianBytes
        sequenceNumber &+= 1
        var checksum = Array(signKey.withBytes { Digest.md5.hmac(number + message, key: $0) }.prefix(8))
        if flags.contains(.keyExchange) { checksum = sealHandle.apply(checksum) }
        return [1, 0, 0, 0] + checksum + number
    }

    /// Encrypts `message`. §3.4.3. Used only by the test of the specification's example, which signs after a sealed
    /// message.
    mutating func seal(_ message: [UInt8]) -> [UInt8] {
        sealHandle.apply(message)
    }
}
