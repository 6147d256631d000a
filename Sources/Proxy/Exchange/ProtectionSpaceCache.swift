// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers
import Synchronization
import CountersignUpstream

/// The protection spaces that have challenged and accepted in this run, so that the next request into one need not be
/// challenged again (RFC 7617 §2.2). Keyed like every other reuse: by origin, credential and its generation, and
/// client.
package final class ProtectionSpaceCache: Sendable {
    struct Key: Hashable, Sendable {
        let origin: Origin
        let trust: UpstreamKey.Trust
        let credential: String
        let generation: UInt64
        let principal: UInt32?
    }

    final class Space: Sendable {
        /// What an exchange in it is told.
        let learned: ExchangeMachine.Learned
        let scope: PathScope
        var kind: OfferKind { learned.kind }

        init(_ learned: ExchangeMachine.Learned, scope: PathScope) {
            self.learned = learned
            self.scope = scope
        }
    }

    /// What was known of a key at some time. Whoever keeps one asks ``ProtectionSpaceCache/isStill(_:)``.
    struct Known {
        fileprivate let changes: UInt64
        fileprivate let spaces: [Space]

        /// The space that `path` lies in.
        func space(for path: ArraySlice<UInt8>) -> Space? { spaces.last { $0.scope.contains(path) } }
    }

    /// How often something was learned or forgotten.
    private let changes = Atomic<UInt64>(0)
    private let spaces = NIOLockedValueBox<[Key: [Space]]>([:])
    private static let spacesPerKey = 32
    private static let keyLimit = 4096

    /// Nothing was learned or forgotten since.
    func isStill(_ known: Known) -> Bool { known.changes == changes.load(ordering: .acquiring) }

    func known(of key: Key) -> Known {
        let changes = self.changes.load(ordering: .acquiring)
        return Known(changes: changes, spaces: spaces.withLockedValue { $0[key] ?? [] })
    }

    func learn(_ space: Space, key: Key) {
        spaces.withLockedValue { spaces in
            if spaces[key] == nil, spaces.count >= Self.keyLimit { spaces.removeAll() }
            var known = spaces[key] ?? []
            known.removeAll { $0.scope == space.scope && $0.kind == space.kind }
            known.append(space)
            if known.count > Self.spacesPerKey { known.removeFirst() }
            spaces[key] = known
        }
        changes.wrappingAdd(1, ordering: .releasing)
    }

    func forget(_ key: Key) {
        spaces.withLockedValue { $0[key] = nil }
        changes.wrappingAdd(1, ordering: .releasing)
    }
}
