// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
package import CountersignParents

/// The next hop of a request, for people and scripts, with the reason.
package struct RouteHop: Equatable, Sendable, Codable {
    /// `direct` or `http://proxy.corp.example:8080`.
    package let hop: String
    package let reason: String

    /// Whether this is a parent and not the site.
    package var isParent: Bool { hop != NextHop.direct.description }

    package init(_ candidate: Route.Candidate) {
        hop = candidate.hop.description
        reason = candidate.reason.description
    }

    /// Without a setting about parents.
    package static let direct = RouteHop(Route.Candidate(.direct, .noParent))

    /// The hops for a URL in the order in which they are tried; direct if there are no routes. Throws ``ParentsError``
    /// and ``HostNameError``.
    package static func all(to url: String, _ routes: (any RouteFinding)?) async throws -> [RouteHop] {
        let url = try AbsoluteURL(parsing: url, defaultScheme: .https)
        guard let routes else { return [.direct] }
        return try await routes.findRoute(to: url.origin, path: url.path).map(RouteHop.init)
    }
}

extension [RouteHop] {
    /// Whether a setting about parents has decided.
    package var isBySetting: Bool { self != [.direct] }

    /// A sentence: `http://a.example:8080 (--parent), then direct (--parent)`.
    package var sentence: String { map { "\($0.hop) (\($0.reason))" }.joined(separator: ", then ") }
}
