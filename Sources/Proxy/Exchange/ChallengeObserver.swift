// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy
import CountersignUpstream

/// Who is told what becomes of challenges. Called on the event loops: it must not block.
package struct ChallengeObserver: Sendable {
    /// What became of one challenge. No secret is in it.
    package enum News: Sendable {
        /// A password that the origin took, or an identity that it was shown.
        case answered(AuthenticationSpace, with: String)
        /// The challenge went on to the client; nil for `challenge`: a request for a client certificate, which TLS went
        /// on without.
        case handedBack(Origin, challenge: Challenge?, ThreeChecks, SiteRule?)
        /// The origin did not take the credential or identity.
        case rejected(AuthenticationSpace, credential: String)
    }

    let tell: @Sendable (News) -> Void

    package init(tell: @escaping @Sendable (News) -> Void) { self.tell = tell }

    /// A request for a client certificate was decided.
    func decided(_ identity: String?, _ checks: ThreeChecks, at origin: Origin, _ rule: SiteRule) {
        if let identity {
            tell(.answered(Self.certificateSpace(of: origin), with: identity))
        } else {
            tell(.handedBack(origin, challenge: nil, checks, rule))
        }
    }

    /// The origin ended the connection; where it did so over the identity that it was shown, that was rejected.
    func ended(_ error: UpstreamError, at origin: Origin) {
        guard let identity = error.rejectedIdentity else { return }
        tell(.rejected(Self.certificateSpace(of: origin), credential: identity.name))
    }

    private static func certificateSpace(of origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: nil, scheme: .certificate)
    }
}

extension ExchangeDriver {
    /// Tells how the exchange ended, if a challenge was in it. What was sent unasked and taken was no challenge.
    func observe(_ outcome: ExchangeMachine.Outcome) {
        guard let observer = services.shared.observer else { return }
        switch outcome {
        case .notChallenged:
            break
        case .accepted(let accepted):
            guard dialogue?.attempt != nil else { return }
            observer.tell(.answered(accepted.space, with: accepted.credential.name))
        case .rejected(let space, let credential, _):
            observer.tell(.rejected(space, credential: credential.name))
        case .handedBack(let checks):
            observer.tell(.handedBack(origin, challenge: foremostChallenge, checks, rule))
        }
    }

    /// The one that would have been answered, else the first.
    private var foremostChallenge: Challenge {
        let context = exchange.context
        let offers = context.authenticators.offers(in: exchange.challenges, permitted: context.permitted)
        return offers.first?.challenge ?? exchange.challenges.first ?? Challenge(scheme: "unknown")
    }
}
