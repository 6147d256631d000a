// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

extension SiteList {
    /// The client of whose request a verdict is about.
    package enum Client {
        /// None that is known: a line with `for=` is for others.
        case unknown
        /// Whoever a line is for: what the list says about the site.
        case anyone
        case standing(ClientStanding)
    }

    /// Why the line `rule` does not answer for `client`; nil if it does.
    func refusal(of client: Client, by rule: SiteRule) -> Refusal? {
        guard let clients = rule.clients else { return nil }
        let standing: ClientStanding?
        switch client {
        case .anyone: return nil
        case .unknown: standing = nil
        case .standing(let known): standing = known
        }
        if let standing, standing.isPermitted(by: clients) { return nil }
        guard let word = standing?.word else {
            return Refusal(.otherClient, "\(rule.location) is for known clients only: for=\(clients)")
        }
        guard let standing, !standing.isExcluded(by: clients) else {
            return Refusal(.otherClient, "\(rule.location) excludes the client \(word): for=\(clients)")
        }
        return Refusal(
            .otherClient, "\(rule.location) is for other clients: for=\(clients)",
            .changeLine(.permitClient(word.description), line: rule.location))
    }
}
