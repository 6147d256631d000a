// SPDX-License-Identifier: Apache-2.0

/// The user's permanent or temporary permission to proceed with one leaf certificate that does not verify, at one
/// origin.
package struct TrustException: Hashable, Sendable {
    /// SHA-256 of the leaf's DER.
    package let leaf: [UInt8]
    /// The last second at which it is valid, since 1970; nil for no limit.
    package let until: Int64?
    /// Whether challenges may be answered as if the certificate verified.
    package let answers: Bool

    package init(leaf: [UInt8], until: Int64?, answers: Bool) {
        self.leaf = leaf
        self.until = until
        self.answers = answers
    }

    /// `now` is in seconds since 1970.
    package func counts(at now: Int64) -> Bool { until.map { now <= $0 } ?? true }
}
