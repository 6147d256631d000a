// SPDX-License-Identifier: Apache-2.0

import CountersignSitePolicy

/// The clients that share a ``Route``.
struct RouteClient: Hashable {
    /// The clients' user id, if the kernel reported it.
    let principal: UInt32?
    /// Nil if the list does not distinguish clients.
    var standing: ClientStanding?

    /// The client of a verdict of the list.
    var siteClient: SiteList.Client { standing.map { .standing($0) } ?? .unknown }
}

/// What is known about the client of a connection, and how it stands to the current list.
final class IdentifiedClient {
    private(set) var facts: ClientFacts
    private var known: (rules: Set<ClientRule>, standing: ClientStanding)?

    init(_ facts: ClientFacts) { self.facts = facts }

    /// Returns whether that changes what is known.
    func hasSent(_ token: ClientToken) -> Bool {
        let name = token.name.map { ClientFacts.Name.named($0) } ?? .none
        guard facts.token != name else { return false }
        facts.token = name
        known = nil
        return true
    }

    func standing(among rules: Set<ClientRule>) -> ClientStanding {
        if let known, known.rules == rules { return known.standing }
        let standing = ClientStanding(facts, among: rules)
        known = (rules, standing)
        return standing
    }
}
