// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
import CountersignBroker
package import CountersignChallenges
import CountersignCryptography
import FoundationEssentials

/// Whether the identity broker can sign a person in now.
package enum BrokerReach {
    /// Asks the broker for its accounts, and blocks until it has answered: a few seconds at most.
    package static func check(
        for account: BrokerCookies.Account, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> ThreeChecks.Check {
        if case .none(let reason) = account { return .no(Refusal(.noCredential, reason)) }
        do throws(BrokerError) {
            let accounts = try Broker.accountsBlocking(
                on: SessionBus(environment: environment), for: .browser, within: .seconds(5),
                random: Randomness.bytes(16))
            let name = PrintableText.plain(try account.chosen(among: accounts).username)
            return .yes("navigation requests of the home's own clients are signed in as \(name)")
        } catch {
            return .no(Refusal(.noCredential, error.detail))
        }
    }
}

extension BrokerCookies.Account {
    /// The account in the broker's list. Throws `noAccount` if the list does not contain it.
    func chosen(among accounts: [BrokerAccount]) throws(BrokerError) -> BrokerAccount {
        switch self {
        case .only: try BrokerAccount.choose(among: accounts, named: nil)
        case .signIn(let name, let subject, _): try BrokerAccount.find(subject, of: name, among: accounts)
        case .none(let reason): throw BrokerError(.noAccount, reason)
        }
    }
}
