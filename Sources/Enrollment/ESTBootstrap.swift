// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography

/// What a server that is not trusted yet says of itself, for a person to confirm (RFC 7030 §4.1.1).
package struct ESTBootstrap: Equatable, Sendable {
    /// The server's own chain as sent, leaf first.
    package let serverChain: [Certificate]
    /// The self-signed authorities of `/cacerts`: one of them, confirmed by its fingerprint, becomes the anchor, and
    /// the server is then verified against it like any other.
    package let authorities: [Certificate]

    /// Asks `/cacerts` over a connection on which nobody was verified. Nothing is shown or sent but the question;
    /// within 30 seconds.
    package static func fetch(_ endpoint: ESTEndpoint) async throws(EnrollmentError) -> ESTBootstrap {
        let access = ESTAuthentication(anchors: [])
        let tls = ServerTLS(host: endpoint.origin.host, verifier: nil, identity: nil, now: { 0 })
        let worker = EnrollmentWorker(
            try CurlSession(tls: tls, access: access, limit: ESTClient.callLimit, now: { 0 }), tls: tls)
        return try await worker.run { session, tls, cancellation throws(EnrollmentError) in
            let response = try session.call(endpoint.url(for: .cacerts), unless: cancellation).response
            guard response.status == 200 else { throw response.refusal("/cacerts") }
            let authorities = try response.certificates("CA certificates").filter {
                $0.isCertificateAuthority && $0.isSelfSigned
            }
            guard !authorities.isEmpty else {
                throw response.malformed("no self-signed authority is among the CA certificates that the server gives")
            }
            return ESTBootstrap(serverChain: tls.chain, authorities: authorities)
        }
    }

    /// The authority whose SHA-256 is `fingerprint`; `untrustedServer` when none has it.
    package func authority(fingerprint: [UInt8]) throws(EnrollmentError) -> Certificate {
        guard let found = authorities.first(where: { $0.sha256Fingerprint == fingerprint }) else {
            let names = authorities.map { "\"\($0)\" (\($0.fingerprintText))" }.joined(separator: ", ")
            throw EnrollmentError(
                .untrustedServer,
                "none of the server's authorities has the fingerprint sha256:\(Hex.encode(fingerprint)): \(names)")
        }
        return found
    }
}
