// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The kinds of trust stores that a root can be installed into.
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
    /// What the store calls it: a file's path, a nickname, an alias.
    let entry: String
    /// The entry without what the store puts around it.
    let name: String
    let certificate: Certificate
    /// The store's programs trust it as an authority for servers.
    let isInForce: Bool
}

/// One trust store: a folder, a database, a keystore. Its verbs run other programs and take up to seconds.
protocol TrustStore: Sendable {
    var kind: TrustStoreKind { get }
    /// What a person knows it by: the path of its folder or file.
    var place: String { get }
    /// Why it cannot be used as it is, such as a program that is missing; nil: it can.
    var obstacle: Diagnostic? { get }
    /// Why it cannot be written by this process; nil: it can.
    func barrier(to change: StoreChange) -> Diagnostic?
    /// The certificates in it that are Countersign's, by their names, and `root` under whatever name.
    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot]
    /// What the change will do, as a clause without a full stop.
    func description(of change: StoreChange) -> String
    /// Does it, whole or not at all.
    func make(_ change: StoreChange) throws(CountersignError)
}

/// What is to be done to a trust store.
enum StoreChange: Equatable, Sendable {
    case add(Certificate, name: RootName)
    case remove([StoredRoot])
}
