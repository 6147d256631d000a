// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignSitePolicy
import CountersignUpstream

/// Answers the certificate requests on the connections of a listed origin, during the handshake or later, by applying
/// the three checks.
enum CertificateRequestAnswerer {
    /// For connections to an origin that is trusted, or whose trust exception permits answering challenges; on other
    /// connections, TLS does not call it. `trust` returns the trust outcome of a connection in use, or nil if it is not
    /// known yet.
    static func source(
        for rule: SiteRule, at origin: Origin, services: LoopServices, client: ClientSession,
        trust: @escaping () -> TrustOutcome? = { nil }
    ) -> CertificateSource {
        { request, connection, answer in
            guard trust()?.isInForce(at: origin, services.shared.policy, now: services.shared.wallClock) != false else {
                return answer(nil)
            }
            let now = services.shared.wallClock()
            let (identity, checks) = services.shared.policy.current.certificateChecks(
                for: request, rule: rule, now: now)
            connection.certificateChecks = checks
            guard client.isStillSameUser() else {
                connection.lacksIdentity = true
                return answer(nil)
            }
            services.shared.observer?.decided(identity?.name, checks, at: origin, rule)
            answer(identity)
        }
    }
}
