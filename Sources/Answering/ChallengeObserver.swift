// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignSitePolicy

/// Receives the outcomes of challenges. It is called on the event loops and must not block.
package struct ChallengeObserver: Sendable {
    /// The outcome of one challenge, without secrets. `path` is that of the request, without the query; nil for a
    /// client certificate.
    package enum News: Sendable {
        /// The origin accepted a password, or an identity was presented to it.
        case answered(AuthenticationSpace, with: String, path: String?)
        /// The origin accepted an answer that was sent before it challenged, as another one had been accepted.
        case answeredUnasked(AuthenticationSpace, path: String?)
        /// The challenge was delivered to the client. `challenge` is nil for a request for a client certificate; the
        /// handshake then continued without one.
        case handedBack(Origin, challenge: Challenge?, ThreeChecks, SiteRule?, path: String?)
        /// The origin rejected the credential or identity.
        case rejected(AuthenticationSpace, credential: String, path: String?)
        /// The certificate of a listed origin does not verify, and there is no decision to proceed.
        case untrusted(Origin, ServerTrust)
        /// A connection to an origin was opened, and its certificate verifies.
        case verified(Origin, ServerTrust)
        /// A client has a blind tunnel to the origin, whose challenges the proxy does not see.
        case tunnelled(Origin, reason: Refusal)
        /// A request or a tunnel was refused, and the origin has seen nothing of it.
        case refused(Origin, Refusal)
        /// A client has refused the certificate that it was shown in place of the origin's.
        case distrusted(ClientDistrust)
        /// There was no connection to the origin, or no response.
        case unreached(Origin, Obstacle)
    }

    /// Why there is no response of an origin.
    package enum Obstacle: Equatable, Sendable {
        case unknownName
        /// The network, or nothing accepts connections there.
        case network
        /// `host:port` of a parent that is at fault, and the status of its response, if it sent one.
        case parent(String, status: Int?)
        /// A script or a setting permits no way.
        case noRoute
        /// The origin closed the connection.
        case closed
        case tooSlow
        case tls
        /// Only a listed site may be on this machine.
        case thisMachine
        case other
    }

    package let tell: @Sendable (News) -> Void
    /// Whether it wants to hear of ``News/answeredUnasked(_:path:)``, which most requests are.
    package let hearsUnasked: Bool

    package init(hearsUnasked: Bool = true, tell: @escaping @Sendable (News) -> Void) {
        self.hearsUnasked = hearsUnasked
        self.tell = tell
    }

    /// Reports the decision about a request for a client certificate.
    package func decided(_ identity: String?, _ checks: ThreeChecks, at origin: Origin, _ rule: SiteRule) {
        if let identity {
            tell(.answered(Self.certificateSpace(of: origin), with: identity, path: nil))
        } else {
            tell(.handedBack(origin, challenge: nil, checks, rule, path: nil))
        }
    }

    /// Reports that the origin has rejected an identity.
    package func rejected(_ identity: Identity, at origin: Origin) {
        tell(.rejected(Self.certificateSpace(of: origin), credential: identity.name, path: nil))
    }

    private static func certificateSpace(of origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: nil, scheme: .certificate)
    }
}
