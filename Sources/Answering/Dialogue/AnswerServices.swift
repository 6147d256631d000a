// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The services that all dialogues of one process share.
package final class AnswerServices: Sendable {
    package let breaker: BreakerBoard
    /// Nil if no access tokens are renewed.
    package let renewer: TokenRenewer?
    /// Nil if nobody is asked for what a token lacks.
    package let scopeAsker: ScopeAsker?
    package let observer: ChallengeObserver?
    /// The nonces that origins have given.
    package let nonces = DPoPNonces()
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64

    package init(
        breaker: BreakerBoard, renewer: TokenRenewer? = nil, scopeAsker: ScopeAsker? = nil,
        observer: ChallengeObserver? = nil, now: @escaping @Sendable () -> Int64
    ) {
        self.breaker = breaker
        self.renewer = renewer
        self.scopeAsker = scopeAsker
        self.observer = observer
        self.now = now
    }
}
