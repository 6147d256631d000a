// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography

/// The certificates of a server that is not trusted yet, for the user to confirm (RFC 7030 §4.1.1).
package struct ESTBootstrap: Equatable, Sendable {
    /// The server's own chain as sent, leaf first.
    package let serverChain: [Certificate]
    /// The self-signed CA certificates from `/cacerts`, possibly none. The one that the user confirms by its
    /// fingerprint becomes the trust anchor of issued certificates, and of the server if it does not have another.
    package let certificationAuthorities: [Certificate]

    /// Requests `/cacerts` on a connection whose server is not verified, and sends nothing else. Takes at most 30
    /// seconds.
    package static func fetch(_ endpoint: ESTEndpoint) async throws(EnrollmentError) -> ESTBootstrap {
        let access = ESTAuthentication(anchors: [])
        let tls = ServerTLS(host: endpoint.origin.host, verifier: nil, identity: nil, now: { 0 })
        let worker = EnrollmentWorker(
            try CurlSession(tls: tls, access: access, limit: ESTClient.callLimit, now: { 0 }), tls: tls)
        return try await worker.run { session, tls, cancellation throws(EnrollmentError) in
            let response = try session.call(endpoint.url(for: .cacerts), unless: cancellation).response
            guard response.status == 200 else { throw response.refusal("/cacerts") }
            let published = ESTPublishedAuthorities(
                certificates: try response.certificates("CA certificates"), serverChain: tls.chain)
            return ESTBootstrap(serverChain: tls.chain, certificationAuthorities: published.roots)
        }
    }

    /// The CA certificate whose SHA-256 is `fingerprint`. Throws `untrustedServer` without one.
    package func certificationAuthority(withFingerprint fingerprint: [UInt8]) throws(EnrollmentError) -> Certificate {
        try Self.certificate(withFingerprint: fingerprint, among: certificationAuthorities)
    }

    /// The one of a server's CA certificates whose SHA-256 is `fingerprint`. Throws `untrustedServer` without one.
    package static func certificate(
        withFingerprint fingerprint: [UInt8], among certificates: [Certificate]
    ) throws(EnrollmentError) -> Certificate {
        guard let found = certificates.first(where: { $0.sha256Fingerprint == fingerprint }) else {
            let names = certificates.map { "\"\($0)\" (\($0.fingerprintText))" }.joined(separator: ", ")
            throw EnrollmentError(
                .untrustedServer,
                "none of the server's CA certificates has the fingerprint sha256:\(Hex.encode(fingerprint)): \(names)")
        }
        return found
    }
}
