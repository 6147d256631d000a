// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
package import CountersignChallenges
import CountersignCryptography
import FoundationEssentials

/// Whether the identity broker can sign a person in now.
package enum BrokerReach {
    /// Asks the broker for its accounts, and blocks until it has answered: a few seconds at most. `account` is the user
    /// name; nil for the only account.
    package static func check(
        for account: String?, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> ThreeChecks.Check {
        do throws(BrokerError) {
            let accounts = try Broker.accountsBlocking(
                on: SessionBus(environment: environment), for: .browser, within: .seconds(5),
                random: Randomness.bytes(16))
            let found = try BrokerAccount.choose(among: accounts, named: account)
            let name = PrintableText.plain(found.username)
            return .yes("navigation requests of the home's own clients are signed in as \(name)")
        } catch {
            return .no(error.detail)
        }
    }
}
