// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignHome
import CountersignProxy
import CountersignSitePolicy

/// `--client`: for whom the list is read.
struct ClientOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Decide for a client of which these words of for= are true. Nothing else of it is known.",
            discussion: "For example exe:/usr/bin/git,user:build. Without it, a line with for= is for others.",
            valueName: "words"))
    var client: String?

    func validate() throws {
        guard let client else { return }
        let rule: ClientRule
        do throws(ClientRule.Fault) {
            rule = try ClientRule(parsing: client)
        } catch {
            throw ValidationError("--client: \(error.message); \(error.hint)")
        }
        guard rule.excluded.isEmpty else { throw ValidationError("--client says what is true: leave out the !") }
    }

    /// The client with these words in `sites`.
    static func client(_ words: String?, in sites: SiteList) throws -> SiteList.Client {
        guard let words else { return .unknown }
        let rule = try ClientRule(parsing: words)
        guard let needs = ClientNeeds([rule] + sites.clientRules) else { return .unknown }
        do throws(ClientFacts.ImpossibleWord) {
            let facts = try ClientFacts(rule.permitted, names: ClientIdentification.names(in: needs))
            return .standing(ClientStanding(facts, among: sites.clientRules))
        } catch {
            throw CountersignError(
                .configuration, "no client is like this: \(error.word) \(error.reason)",
                hint: "name what is true of one client, as in --client user:build,exe:/usr/bin/git")
        }
    }
}
