// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy
import CountersignUpstream

/// Receives the outcomes of challenges. It is called on the event loops and must not block.
package struct ChallengeObserver: Sendable {
    /// The outcome of one challenge, without secrets.
    package enum News: Sendable {
        /// The origin accepted a password, or an identity was presented to it.
        case answered(AuthenticationSpace, with: String)
        /// The challenge was delivered to the client. `challenge` is nil for a request for a client certificate; the
        /// handshake then continued without one.
        case handedBack(Origin, challenge: Challenge?, ThreeChecks, SiteRule?)
        /// The origin rejected the credential or identity.
        case rejected(AuthenticationSpace, credential: String)
    }

    let tell: @Sendable (News) -> Void

    package init(tell: @escaping @Sendable (News) -> Void) { self.tell = tell }

    /// Reports the decision about a request for a client certificate.
    func decided(_ identity: String?, _ checks: ThreeChecks, at origin: Origin, _ rule: SiteRule) {
        if let identity {
            tell(.answered(Self.certificateSpace(of: origin), with: identity))
        } else {
            tell(.handedBack(origin, challenge: nil, checks, rule))
        }
    }

    /// Reports a rejected identity, if that was the reason that the origin closed the connection.
    func ended(_ error: UpstreamError, at origin: Origin) {
        guard let identity = error.rejectedIdentity else { return }
        tell(.rejected(Self.certificateSpace(of: origin), credential: identity.name))
    }

    private static func certificateSpace(of origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: nil, scheme: .certificate)
    }
}

extension ExchangeDriver {
    /// Reports the outcome of the exchange, if it involved a challenge. An answer that was sent and accepted without a
    /// challenge is not reported.
    func observe(_ outcome: ExchangeMachine.Outcome) {
        guard let observer = services.shared.observer else { return }
        switch outcome {
        case .notChallenged:
            break
        case .accepted(let accepted):
            guard dialogue?.permit != nil else { return }
            observer.tell(.answered(accepted.space, with: accepted.credential.name))
        case .rejected(let space, let credential, _):
            observer.tell(.rejected(space, credential: credential.name))
        case .handedBack(let checks):
            observer.tell(.handedBack(origin, challenge: foremostChallenge, checks, rule))
        }
    }

    /// The challenge that would have been answered, or else the first.
    private var foremostChallenge: Challenge {
        let context = exchange.context
        let offers = context.authenticators.offers(in: exchange.challenges, permitted: context.permitted)
        return offers.first?.challenge ?? exchange.challenges.first ?? Challenge(scheme: "unknown")
    }
}
