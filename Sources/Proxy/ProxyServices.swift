// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// The services that all event loops of a proxy share.
package final class ProxyServices: Sendable {
    package let configuration: ProxyConfiguration
    package let policy: CurrentPolicy
    package let breaker: BreakerBoard
    package let acceptedAnswers = ProtectionSpaceCache()
    let leaves = LeafCache()
    let accessLog: AccessLog?
    /// Decides about listed origins whose certificate does not verify and for which there is no trust exception.
    let serverTrustDecider: (any ServerTrustDecider)?
    /// Supplies another credential when an origin rejects the one that its site's line names.
    let delegateCredentials: ReplacementCredentials?
    /// Receives reports on whether origins accept client identities.
    let identityRefresher: IdentityRefresher?
    /// Receives the outcome of each challenge.
    let observer: ChallengeObserver?
    /// The name of this process in `Via` (RFC 9110 §7.6.3), which is new in each run.
    let pseudonym: String
    /// Added to every message that is forwarded.
    let via: ViaField
    /// The current time in seconds since 1970.
    let wallClock: @Sendable () -> Int64

    package init(
        configuration: ProxyConfiguration, policy: CurrentPolicy, accessLog: AccessLog?,
        breaker: BreakerBoard? = nil,
        serverTrustDecider: (any ServerTrustDecider)? = nil, delegateCredentials: ReplacementCredentials? = nil,
        identityRefresher: IdentityRefresher? = nil, observer: ChallengeObserver? = nil,
        pseudonym: String,
        wallClock: @escaping @Sendable () -> Int64
    ) {
        self.configuration = configuration
        self.policy = policy
        self.accessLog = accessLog
        self.breaker = breaker ?? BreakerBoard(now: wallClock)
        self.serverTrustDecider = serverTrustDecider
        self.delegateCredentials = delegateCredentials
        self.identityRefresher = identityRefresher
        self.observer = observer
        self.pseudonym = pseudonym
        via = ViaField("1.1 \(pseudonym)")
        self.wallClock = wallClock
    }
}
