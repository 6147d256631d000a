// SPDX-License-Identifier: Apache-2.0

/// Whether one certificate is revoked, according to its issuer.
///
/// The path of a status: ``ChainVerifier`` returns a ``RevocationQuestion`` for each certificate of a verified path
/// whose status it does not know. Code outside this module fetches the documents that the certificate names: an
/// ``OCSPResponse`` or a ``RevocationList``. These functions judge the bytes for a certificate and its issuer at a
/// given time, and the resulting status is an input of the next verification. Nothing in this module fetches.
package struct CertificateStatus: Equatable, Sendable {
    package enum Finding: Equatable, Sendable {
        case good
        case revoked(RevocationEntry)
        /// With a short sentence that says why.
        case unknown(String)
    }

    package let finding: Finding
    /// The source of the finding; nil if it is unknown.
    package let source: ServerTrust.RevocationSource?
    /// The first and the last second at which the status counts; since 1970.
    package let validity: ClosedRange<Int64>

    package init(_ finding: Finding, from source: ServerTrust.RevocationSource?, validity: ClosedRange<Int64>) {
        self.finding = finding
        self.source = source
        self.validity = validity
    }
}

/// A judgement on an OCSP response or a revocation list.
package struct StatusJudgement: Equatable, Sendable {
    package let finding: CertificateStatus.Finding
    /// The last second for which the judgement stays the same; since 1970.
    package let holdsUntil: Int64
    /// Whether the issuer says when it will publish newer information (nextUpdate).
    package let isDated: Bool
}

/// Why and when a certificate was revoked (RFC 5280 §5.3, RFC 6960 §4.2.1).
package struct RevocationEntry: Hashable, Sendable {
    /// Seconds since 1970; nil if it cannot be read.
    package let date: Int64?
    package let reason: RevocationReason?

    package init(date: Int64?, reason: RevocationReason?) {
        self.date = date
        self.reason = reason
    }
}

/// CRLReason (RFC 5280 §5.3.1). `unspecified` is treated as absent.
package enum RevocationReason: Int32, Sendable {
    case keyCompromise = 1
    case authorityCompromise = 2
    case affiliationChanged = 3
    case superseded = 4
    case cessationOfOperation = 5
    case certificateHold = 6
    case privilegeWithdrawn = 9
    case attributeAuthorityCompromise = 10

    package var text: String {
        switch self {
        case .keyCompromise: "key compromise"
        case .authorityCompromise: "CA compromise"
        case .affiliationChanged: "affiliation changed"
        case .superseded: "superseded"
        case .cessationOfOperation: "cessation of operation"
        case .certificateHold: "certificate hold"
        case .privilegeWithdrawn: "privilege withdrawn"
        case .attributeAuthorityCompromise: "attribute authority compromise"
        }
    }
}

/// One location at which the issuer of a certificate publishes its status. The URLs are untrusted input: nothing but
/// their scheme, characters and length has been checked.
package enum RevocationPoint: Hashable, Sendable {
    /// An OCSP responder (RFC 6960).
    case responder(url: String)
    /// A revocation list (RFC 5280 §5).
    case list(url: String)

    package var url: String {
        switch self {
        case .responder(let url), .list(let url): url
        }
    }
}

/// A certificate of a verified path whose status is not known, and the locations of its status.
package struct RevocationQuestion: Hashable, Sendable {
    package let certificate: Certificate
    /// The next certificate of the path.
    package let issuer: Certificate
    /// In order of preference; never empty.
    package let points: [RevocationPoint]
    /// Whether the certificate is the server's own.
    package let isOfLeaf: Bool
    /// Whether the path ends in an anchor that the user has added.
    package let isBelowOwnAnchor: Bool

    package init(
        certificate: Certificate, issuer: Certificate, points: [RevocationPoint], isOfLeaf: Bool, isBelowOwnAnchor: Bool
    ) {
        self.certificate = certificate
        self.issuer = issuer
        self.points = points
        self.isOfLeaf = isOfLeaf
        self.isBelowOwnAnchor = isBelowOwnAnchor
    }
}

/// The statuses that have been learned, as an input of a verification.
package struct KnownStatuses: Sendable {
    /// Whether an unknown status is a reason against the chain.
    package let areRequired: Bool
    /// Whether unknown statuses are questions.
    package let canBeLearned: Bool
    private let find: @Sendable (_ certificate: Certificate, _ issuer: Certificate) -> CertificateStatus?

    package init(
        areRequired: Bool, canBeLearned: Bool,
        find: @escaping @Sendable (_ certificate: Certificate, _ issuer: Certificate) -> CertificateStatus?
    ) {
        self.areRequired = areRequired
        self.canBeLearned = canBeLearned
        self.find = find
    }

    /// Nothing is known, and nothing can be learned.
    package static let none = KnownStatuses(areRequired: false, canBeLearned: false) { _, _ in nil }

    /// The status of `certificate` by `issuer`, if it counts at `time`.
    func status(of certificate: Certificate, by issuer: Certificate, at time: Int64) -> CertificateStatus? {
        guard let status = find(certificate, issuer), status.validity.contains(time) else { return nil }
        return status
    }
}
