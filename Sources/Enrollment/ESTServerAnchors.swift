// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The trust anchors that verify an EST server (RFC 7030 §3.6). They need not be those of the certificates that it
/// issues.
package enum ESTServerAnchors: Sendable {
    /// Self-signed CA certificates and no others (§3.6.1).
    case explicit([Certificate])
    /// The system's anchors and additional ones (§3.6.2), with the lists that revoke their certificates.
    case implicit(additional: [Certificate], revocationLists: [RevocationList])

    /// Throws `configuration` if OpenSSL does not accept an anchor.
    func verifier(refusing refused: [Certificate]) throws(EnrollmentError) -> ChainVerifier {
        do {
            switch self {
            case .explicit(let anchors):
                return ChainVerifier(
                    anchors: try TrustAnchors(system: false, additional: anchors), refusing: refused)
            case .implicit(let additional, let lists):
                return ChainVerifier(
                    anchors: try TrustAnchors(system: true, additional: additional), refusing: refused,
                    revocationLists: lists)
            }
        } catch {
            throw EnrollmentError(.configuration, error.detail)
        }
    }

    /// For error messages.
    var text: String {
        switch self {
        case .explicit(let anchors):
            "the trust anchor is " + anchors.map { "\"\($0)\" (\($0.fingerprintText))" }.joined(separator: ", ")
        case .implicit: "the trust anchors are the system's and those in Certs/anchors"
        }
    }
}

/// The CA certificates of an EST server that has been verified, and its own chain.
package struct ESTPublishedAuthorities: Equatable, Sendable {
    /// In the server's order.
    package let certificates: [Certificate]
    /// The server's chain as sent, leaf first.
    package let serverChain: [Certificate]

    /// The self-signed CA certificates.
    package var roots: [Certificate] { certificates.filter { $0.isCertificateAuthority && $0.isSelfSigned } }

    package init(certificates: [Certificate], serverChain: [Certificate]) {
        self.certificates = certificates
        self.serverChain = serverChain
    }

    /// The roots that `anchors` neither contain nor vouch for, or nil if the certificates contain no anchor and none
    /// that an anchor vouches for.
    package func unvouchedRoots(besides anchors: [Certificate], at time: Int64) -> [Certificate]? {
        (try? ESTCertificationAuthorities(certificates, anchors: anchors, at: time))?.unvouched
    }
}

extension ESTEndpoint {
    /// Whether `anchors` verify `chain` as this server's.
    package func isVerified(
        _ chain: [Certificate], by anchors: ESTServerAnchors, refusing refused: [Certificate] = [], at time: Int64
    ) -> Bool {
        guard let verifier = try? anchors.verifier(refusing: refused) else { return false }
        return verifier.evaluate(chain: chain, host: origin.host, at: time).isTrusted
    }
}
