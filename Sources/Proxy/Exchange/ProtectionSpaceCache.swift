// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignUpstream
import NIOConcurrencyHelpers
import Synchronization

/// The protection spaces in which an answer was accepted in this run. The next request into such a space can be
/// answered before it is challenged (RFC 7617 §2.2). All event loops share the cache. Its key contains everything that
/// limits reuse: origin, trust, credential and client.
package final class ProtectionSpaceCache: Sendable {
    struct Key: Hashable, Sendable {
        let origin: Origin
        let trust: UpstreamKey.Trust
        let credential: CredentialReference
        let principal: UInt32?
        /// ``UpstreamKey/line``
        var line = 0
    }

    final class Space: Sendable {
        let accepted: AcceptedAnswer
        let scope: PathScope
        /// Properties of ``accepted``'s authenticator, which every request reads.
        let usesTicket: Bool
        let bindsConnection: Bool
        /// When the space was made, among all: a later one has a larger number.
        private let serial: UInt64

        private static let made = Atomic<UInt64>(0)

        init(_ accepted: AcceptedAnswer, scope: PathScope) {
            self.accepted = accepted
            self.scope = scope
            usesTicket = accepted.offer.authenticator.usesTicket
            bindsConnection = accepted.offer.authenticator.bindsConnection
            serial = Self.made.wrappingAdd(1, ordering: .relaxed).newValue
        }

        /// Whether this space counts for a path in both: it is narrower, or as wide and later. Both directories are
        /// parents of the path, so the longer one is below the other.
        func isPreferred(to other: Space) -> Bool {
            let (own, others) = (scope.directory.utf8.count, other.scope.directory.utf8.count)
            return own == others ? serial > other.serial : own > others
        }

        fileprivate func isReplaced(by other: Space) -> Bool {
            scope == other.scope && accepted.offer.authenticator === other.accepted.offer.authenticator
        }
    }

    /// The spaces of one key at one time; valid while ``ProtectionSpaceCache/isCurrent(_:)``.
    struct Snapshot {
        fileprivate let changes: UInt64
        /// The newest one comes last.
        let spaces: [Space]

        /// Which of them is the newest one that contains `path`.
        func index(for path: ArraySlice<UInt8>) -> Int? { spaces.lastIndex { $0.scope.contains(path) } }
    }

    /// Counts additions and removals.
    private let changes = Atomic<UInt64>(0)
    /// Whether a ticket has ever been accepted. Without this, every request would search for one.
    private let hasHadTickets = Atomic(false)
    private let spaces = NIOLockedValueBox<[Key: [Space]]>([:])
    /// The generation of the policy that ``keepOnly(_:)`` was last called with.
    private let generation = Atomic<UInt64>(0)
    private static let spacesPerKey = 32
    private static let keyLimit = 4096

    /// Whether nothing has been added or removed since. One atomic load: every request asks.
    func isCurrent(_ snapshot: Snapshot) -> Bool { snapshot.changes == changes.load(ordering: .acquiring) }

    /// Whether a ticket may have been accepted anywhere.
    var hasTickets: Bool { hasHadTickets.load(ordering: .acquiring) }

    func snapshot(of key: Key) -> Snapshot {
        let changes = self.changes.load(ordering: .acquiring)
        return Snapshot(changes: changes, spaces: spaces.withLockedValue { $0[key] ?? [] })
    }

    func add(_ space: Space, key: Key) {
        spaces.withLockedValue { spaces in
            if spaces[key] == nil, spaces.count >= Self.keyLimit { spaces.removeAll() }
            var known = spaces[key] ?? []
            known.removeAll { $0.isReplaced(by: space) }
            known.append(space)
            if known.count > Self.spacesPerKey { known.removeFirst() }
            spaces[key] = known
        }
        if space.usesTicket { hasHadTickets.store(true, ordering: .releasing) }
        changes.wrappingAdd(1, ordering: .releasing)
    }

    /// Removes the answers of credentials that `policy` no longer has. Called often, works once per policy.
    func keepOnly(_ policy: Policy) {
        guard generation.exchange(policy.generation, ordering: .acquiringAndReleasing) != policy.generation else {
            return
        }
        let credentials = policy.credentialReferences
        spaces.withLockedValue { spaces in
            spaces = spaces.filter { space in
                guard case .vault = space.key.credential.source else { return true }
                return credentials.contains(space.key.credential)
            }
        }
        changes.wrappingAdd(1, ordering: .releasing)
    }

    func removeAll(of key: Key) {
        spaces.withLockedValue { $0[key] = nil }
        changes.wrappingAdd(1, ordering: .releasing)
    }
}
