// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What is wrong with an audit, and where it begins to be.
package struct AuditFault: Sendable, Equatable, Encodable, Error {
    package enum Kind: String, Sendable, Encodable {
        /// A line is not a record.
        case malformed
        /// A record has other bytes than those that it was written with.
        case changed
        /// Records before this one are missing, or were moved.
        case removed
        /// A record stands after one with the same number or a higher one: it was inserted or moved.
        case misplaced
        /// A record names another one before it: that one was replaced, or this one was.
        case unlinked
        /// The first record of a file is missing.
        case headless
        /// A file begins an audit of its own and does not continue the one before it.
        case unrelated
        /// An unfinished line is not the one that a server found and recorded.
        case cut
        /// A signature is not that of the records before it.
        case signature
        /// Signed by another key.
        case otherKey
        /// More records than a server writes without a signature.
        case unsigned
    }

    package let kind: Kind
    package let file: String
    /// From 1, in the file. 0 if it is not known.
    package let line: Int
    /// The number of the record, as far as it is known.
    package let record: UInt64?
    /// A sentence in lower case without a full stop.
    package let reason: String

    /// `line 7, record 7`.
    package var place: String { "line \(line)" + (record.map { ", record \($0)" } ?? "") }

    package var text: String { "\(PrintableText.escaped(file)): \(place): \(reason)" }
}
