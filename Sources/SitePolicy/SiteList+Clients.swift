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
        if let clients = rule.clients, let refusal = refusal(of: client, by: clients, at: rule.location) {
            return refusal
        }
        guard let credential = rule.credentialClients else { return nil }
        return refusal(of: client, by: credential.clients, at: credential.location)
    }

    /// The same for the clients of the line at `location`. A client does not learn who else is permitted.
    private func refusal(of client: Client, by clients: ClientRule, at location: String) -> Refusal? {
        let standing: ClientStanding?
        switch client {
        case .anyone: return nil
        case .unknown: standing = nil
        case .standing(let known): standing = known
        }
        if let standing, standing.isPermitted(by: clients) { return nil }
        guard let word = standing?.word else {
            return Refusal(.otherClient, "\(location) is for known clients only")
        }
        guard let standing, !standing.isExcluded(by: clients) else {
            return Refusal(.otherClient, "\(location) excludes the client \(word)")
        }
        return Refusal(
            .otherClient, "\(location) is for other clients",
            .changeLine(.permitClient(word.description), line: location))
    }
}
