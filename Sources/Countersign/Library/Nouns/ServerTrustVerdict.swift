// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates

/// The result of verifying a server's certificate.
public struct ServerTrustVerdict: Hashable, Sendable {
    /// The certificate chain sent by the server, leaf first.
    public let chain: [X509Certificate]
    /// The reasons that verification failed, without duplicates; empty if it succeeded.
    public let reasons: [ServerTrustReason]
    /// Whether the certificate is revoked, or that this is unknown.
    public let revocation: RevocationStatus

    /// Whether a trust exception made with `countersign trust allow --answer` applies.
    private let isExcepted: Bool

    /// Whether the certificate was verified, or the user has recorded a trust exception for it with `countersign trust
    /// allow --answer`.
    public var isTrusted: Bool { (reasons.isEmpty || isExcepted) && !chain.isEmpty }

    /// The server's own certificate.
    public var leaf: X509Certificate? { chain.first }

    /// Creates a verdict, for the tests of a program.
    public init(
        chain: [X509Certificate], reasons: [ServerTrustReason] = [],
        revocation: RevocationStatus = .unknown("not checked")
    ) {
        self.chain = chain
        self.reasons = reasons
        self.revocation = revocation
        isExcepted = false
    }

    package init(_ trust: CountersignCertificates.ServerTrust, isExcepted: Bool = false) {
        self.isExcepted = isExcepted
        chain = trust.chain.map(X509Certificate.init)
        reasons = trust.reasons.map { ServerTrustReason($0, description: trust.text(of: $0)) }
        revocation = RevocationStatus(trust.revocation)
    }
}

extension ServerTrustVerdict: CustomStringConvertible {
    /// `certificate expired 2026-01-01; certificate is for another host`, or `certificate trusted`.
    public var description: String {
        reasons.isEmpty && isTrusted ? "certificate trusted" : reasons.map(\.description).joined(separator: "; ")
    }
}

/// A reason that verifying a server's certificate failed.
public struct ServerTrustReason: Hashable, Sendable {
    /// The kinds of reason. Later versions may add kinds, so include a `default` in a `switch`.
    public enum Kind: Hashable, Sendable {
        /// The certificate or one of its issuers has expired.
        case expired
        /// The certificate or one of its issuers is not valid yet.
        case notYetValid
        /// The certificate is for another host.
        case hostMismatch
        /// The certificate is self-signed.
        case selfSigned
        /// The chain does not end in a trust anchor: its root is not known.
        case unknownIssuer
        /// The server sent its own certificate without that of its issuer.
        case incompleteChain
        /// The certificate or one of its issuers has been revoked.
        case revoked
        /// The site's line has `revocation=require`, and the status cannot be learned.
        case revocationUnknown
        /// The key usage or extended key usage does not permit a TLS server, or a certification authority.
        case wrongPurpose
        /// A key is weaker than RSA 2048 or P-256.
        case weakKey
        /// A signature uses a hash weaker than SHA-256.
        case weakSignature
        /// The certificate is that of a certification authority.
        case authorityAsLeaf
        /// An issuer's name constraints do not permit the name (RFC 5280 §4.2.1.10).
        case nameConstraint
        /// The chain is longer than an issuer permits (RFC 5280 §4.2.1.9).
        case pathLength
        /// Any other reason, given in the description.
        case other
    }

    /// The kind of reason.
    public let kind: Kind
    /// A short sentence for display, in lower case and without a full stop.
    public let description: String

    /// Creates a reason, for the tests of a program.
    public init(_ kind: Kind, description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ reason: ServerTrust.Reason, description: String) {
        self.description = description
        kind =
            switch reason {
            case .expired: .expired
            case .notYetValid: .notYetValid
            case .hostMismatch: .hostMismatch
            case .selfSigned: .selfSigned
            case .unknownIssuer: .unknownIssuer
            case .incompleteChain: .incompleteChain
            case .revoked: .revoked
            case .revocationUnknown: .revocationUnknown
            case .wrongPurpose: .wrongPurpose
            case .weakKey: .weakKey
            case .weakSignature: .weakSignature
            case .caAsLeaf: .authorityAsLeaf
            case .nameConstraint: .nameConstraint
            case .pathLength: .pathLength
            case .other: .other
            }
    }
}

extension ServerTrustReason: CustomStringConvertible {}
