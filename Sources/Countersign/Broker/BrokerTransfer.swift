// SPDX-License-Identifier: Apache-2.0

import CountersignBroker
import CountersignCryptography
package import CountersignSignIn
import CountersignSitePolicy
import Glibc
import Synchronization

/// A sign-in with which the identity broker of the machine goes on when the provider's pages have enrolled the device.
package final class BrokerTransfer: Sendable {
    private let profile: SignInProfile
    private let environment: [String: String]
    private let account: String?
    private let limit: Duration
    private let choose: (@Sendable ([String]) async -> Int?)?
    private let found = Mutex<BrokerSignIn.Result?>(nil)

    /// `account` is the user name at the broker; nil for the only account, or the choice of `choose`. The broker has
    /// until `limit` for the tokens.
    package init(
        _ profile: SignInProfile, _ environment: [String: String], account: String?, limit: Duration,
        choose: (@Sendable ([String]) async -> Int?)? = nil
    ) {
        self.choose = choose
        self.profile = profile
        self.environment = environment
        self.account = account
        self.limit = limit
    }

    /// The broker's tokens, once ``run()`` has returned.
    package var result: BrokerSignIn.Result? { found.withLock { $0 } }

    /// Whether the provider is one whose tokens the broker has, and there is a broker on the session bus that answers.
    /// A bus without one costs no time; a broker has five seconds.
    package func isPossible() async -> Bool {
        guard SiteRule.brokerSites.contains("https://\(profile.issuer.url.origin.authority)") else { return false }
        let environment = environment
        return await Task.detached {
            do throws(BrokerError) {
                _ = try Broker.accountsBlocking(
                    on: SessionBus(environment: environment), for: .browser, within: .seconds(5),
                    random: Randomness.bytes(16))
                return true
            } catch {
                return false
            }
        }.value
    }

    /// Gets the tokens from the broker, which may show a window of its own.
    package func run() async throws {
        let broker = BrokerSignIn(profile, environment: environment) { Int64(time(nil)) }
        let result = try await broker.run(
            account: account, isInteractive: BrokerSignIn.isInteractive(environment), limit: limit, choose: choose)
        found.withLock { $0 = result }
    }
}
