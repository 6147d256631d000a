// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Judges an origin's chain (RFC 5280 §6, RFC 9525) and names every reason against it.
///
/// OpenSSL builds and validates the path under its strict flags: server purpose, no look at the common name, no anchor
/// but a whole chain's end. ``CertificateRequirements`` adds what OpenSSL lets pass, ``RevocationFindings`` what
/// stapled responses and the lists kept here say. Nothing is fetched: no list, no response, no missing issuer.
package struct ChainVerifier: Sendable {
    /// What a chain must end in.
    package let anchors: TrustAnchors
    /// Authorities that must not be in a chain although an anchor vouches for them: this proxy's own.
    package let refused: [Certificate]
    /// The lists that leaves and issuers are looked up in.
    package let revocationLists: [RevocationList]
    private let isPublicSuffix: @Sendable (String) -> Bool

    /// The longest chain that is followed, anchor and leaf not counted.
    package static let maximumDepth: Int32 = 10

    /// `refusing` names authorities whose keys must not occur in a chain. `revocationLists` say who is revoked; a list
    /// that is missing, stale or not signed by the issuer leaves it unknown. `isPublicSuffix` tells of a name in lower
    /// case whether a wildcard right below it is too wide; a single label always is.
    package init(
        anchors: TrustAnchors, refusing refused: [Certificate] = [], revocationLists: [RevocationList] = [],
        isPublicSuffix: @escaping @Sendable (String) -> Bool = { _ in false }
    ) {
        self.anchors = anchors
        self.refused = refused
        self.revocationLists = revocationLists
        self.isPublicSuffix = isPublicSuffix
    }

    /// What came, or did not, of a stapled OCSP response (RFC 6066 §8).
    package enum Staple: Hashable, Sendable {
        case absent
        /// It may come later in the handshake: that it is not here is no reason yet.
        case awaited
        /// In DER.
        case received([UInt8])
    }

    /// A verdict, and how long the same would be found.
    package struct Appraisal: Sendable {
        package let trust: ServerTrust
        /// The last second before a date of a certificate, list or response is passed; in seconds since 1970.
        package let holdsUntil: Int64

        package init(trust: ServerTrust, holdsUntil: Int64) {
            self.trust = trust
            self.holdsUntil = holdsUntil
        }
    }

    /// The verdict on `chain`, leaf first and as sent, for `host`: a canonical name or an IP address' text. `time` is
    /// in seconds since 1970; `stapledOCSP` is the response that came with the chain, in DER.
    package func evaluate(
        chain: [Certificate], host: String, at time: Int64, stapledOCSP: [UInt8]? = nil
    ) -> ServerTrust {
        appraise(chain: chain, host: host, at: time, staple: stapledOCSP.map { .received($0) } ?? .absent).trust
    }

    /// The verdict as ``evaluate(chain:host:at:stapledOCSP:)`` has it, and how long it holds.
    package func appraise(chain: [Certificate], host: String, at time: Int64, staple: Staple) -> Appraisal {
        guard let leaf = chain.first else {
            let trust = ServerTrust(
                chain: [], reasons: [.other("no certificate was sent")], revocation: .unknown("no certificate"))
            return Appraisal(trust: trust, holdsUntil: .max)
        }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let findings = ChainFindings()
        let path = ChainPath.build(chain, leaf: leaf, host: host, at: time, verifier: self, into: findings)
        if !accepts(host, in: leaf) { findings.add(.hostMismatch, depth: 0) }
        for (depth, certificate) in path.belowAnchor.enumerated() {
            for reason in CertificateRequirements.reasons(against: certificate, isLeaf: depth == 0) {
                findings.add(reason, depth: Int32(depth))
            }
        }
        let refusedKeys = Set(refused.map(\.publicKeyDER))
        if !refusedKeys.isEmpty, path.whole.contains(where: { refusedKeys.contains($0.publicKeyDER) }) {
            findings.add(.other("certificate issued by an interception authority of this proxy"), depth: 0)
        }
        let revocation = RevocationFindings.judge(path, staple: staple, at: time, into: findings)
        return Appraisal(
            trust: ServerTrust(chain: chain, reasons: findings.reasons, revocation: revocation.verdict),
            holdsUntil: min(revocation.holdsUntil, lastSecond(of: path, sent: chain, at: time)))
    }

    /// Whether the leaf is for `host`: all of a verdict that hangs on the host, as long as it is one.
    package func isNamed(_ host: String, in leaf: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return accepts(host, in: leaf) && ChainPath.accepts(host, in: leaf)
    }

    private func accepts(_ host: String, in leaf: Certificate) -> Bool {
        HostMatch(host: host, isPublicSuffix: isPublicSuffix).accepts(leaf)
    }

    /// The last second before a date of a certificate or of a list, at which OpenSSL's finding changes.
    private func lastSecond(of path: ChainPath, sent chain: [Certificate], at time: Int64) -> Int64 {
        let turningPoints =
            (chain + path.whole).flatMap { [$0.notBefore, $0.notAfter] }
            + revocationLists.flatMap { [$0.thisUpdate, $0.nextUpdate] }.compactMap(\.self)
        return turningPoints.filter { $0 > time }.map { $0 - 1 }.min() ?? .max
    }
}
