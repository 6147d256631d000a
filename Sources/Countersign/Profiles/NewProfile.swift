// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignVault
package import FoundationEssentials

/// A configuration profile on its way into the vault, as a ``ProfilePlan`` has decided. The keys of its identities are
/// in ``ProfileKeys``.
package struct NewProfile: Equatable, Sendable, Codable {
    /// The record as it will be, without its journal.
    package var record: ProfileRecord
    /// The certificates of ``ProfileRecord/anchors``, in the same order, DER.
    package var anchors: [Data]
    /// The chains of ``ProfileRecord/identities``, in the same order, DER, leaf first.
    package var chains: [[Data]]
    /// The parts of an enrolment beyond ``ProfileRecord/enrollment``.
    package var enrollment: Enrollment?

    package struct Enrollment: Equatable, Sendable, Codable {
        /// The anchors of issued certificates, DER; not empty.
        package var anchors: [Data]
        /// Whether these also verify the server. Otherwise the system's do, with those in `Certs/anchors` and the
        /// profile's.
        package var verifiesServer: Bool
        /// The name of the profile's identity that authenticates the request; nil if it has none.
        package var identity: String?
    }

    package init(record: ProfileRecord) {
        self.record = record
        anchors = []
        chains = []
    }
}

/// The private keys of a profile's identities, in the order of the identities, as one secret: for each, four bytes
/// length and the PKCS#8 in DER.
package enum ProfileKeys {
    package static func encoded(_ keys: [Secret]) -> Secret {
        Secret(count: keys.reduce(0) { $0 + 4 + $1.count }) { room in
            var offset = 0
            for key in keys {
                for shift in [24, 16, 8, 0] {
                    room[offset] = UInt8(truncatingIfNeeded: key.count >> shift)
                    offset += 1
                }
                key.withBytes { UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: $0) }
                offset += key.count
            }
        }
    }

    /// Nil for other bytes.
    package static func decoded(_ secret: Secret) -> [Secret]? {
        secret.withBytes { bytes in
            var rest = bytes[...]
            var keys: [Secret] = []
            while !rest.isEmpty {
                guard rest.count >= 4 else { return nil }
                let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(4)
                guard (1...rest.count).contains(count) else { return nil }
                keys.append(Secret(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            return keys
        }
    }
}

/// The items that were removed with a profile.
package struct RemovedProfile: Equatable, Sendable, Codable {
    package let identifier: String
    package let name: String
    /// Files in `Certs/anchors`.
    package let anchors: [String]
    /// The names of identities.
    package let identities: [String]
    /// The items that were kept because something else needs them, as sentences.
    package let kept: [String]
}
