// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome

/// The kinds of trust store into which a root can be installed.
package enum TrustStoreKind: String, CaseIterable, Sendable {
    /// The system's anchors, which OpenSSL, GnuTLS, curl, git and most programs read.
    case system
    /// The databases of Firefox and Chromium.
    case nss
    /// The anchors of Java runtimes.
    case java
}

/// One certificate in a trust store.
struct StoredRoot: Equatable, Sendable {
    /// The store's name for it: a file's path, a nickname or an alias.
    let entry: String
    /// The entry without prefixes and suffixes that the store adds.
    let name: String
    let certificate: Certificate
    /// Whether programs that use the store trust it for server certificates.
    let isInForce: Bool
}

/// One trust store: a folder, a database or a keystore. Its methods run other programs, which may take seconds.
protocol TrustStore: Sendable {
    var kind: TrustStoreKind { get }
    /// The path of its folder or file, for display.
    var place: String { get }
    /// Why the store cannot be used, for example a missing program; nil if it can.
    var obstacle: Diagnostic? { get }
    /// Why this process cannot make the change; nil if it can.
    func barrier(to change: StoreChange) -> Diagnostic?
    /// The certificates in it whose names are Countersign's, and `root` under any name.
    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot]
    /// The effect of the change, in a clause without a full stop.
    func description(of change: StoreChange) -> String
    /// Makes the change, completely or not at all.
    func make(_ change: StoreChange) throws(CountersignError)
    /// Removes the remains of a killed process from a store that contains none of Countersign's roots.
    func removeRemains()
}

extension TrustStore {
    func removeRemains() {}
}

/// A change to a trust store.
enum StoreChange: Equatable, Sendable {
    case add(Certificate, name: RootName)
    case remove([StoredRoot])
}
