// SPDX-License-Identifier: Apache-2.0

import Challenges
import NIOConcurrencyHelpers
import Upstream

/// The protection spaces that have challenged and accepted in this run, so that the next request into one need not be
/// challenged again (RFC 7617 §2.2). Keyed like every other reuse: by origin, credential and its generation, and client.
package final class LearnedSpaces: Sendable {
    struct Key: Hashable, Sendable {
        let origin: Origin
        let trust: UpstreamKey.Trust
        let credential: String
        let generation: UInt64
        let principal: UInt32?
    }

    struct Space: Sendable {
        let kind: OfferKind
        let realm: String
        let scope: PathScope
        /// Basic only: what was accepted.
        let authorization: Authorization?
    }

    private let spaces = NIOLockedValueBox<[Key: [Space]]>([:])
    private static let spacesPerKey = 32
    private static let keyLimit = 4096

    /// The space that `path` lies in.
    func space(for path: String, key: Key) -> Space? {
        spaces.withLockedValue { $0[key]?.last { $0.scope.contains(path) } }
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
    }

    func forget(_ key: Key) {
        spaces.withLockedValue { $0[key] = nil }
    }
}
