// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// What was found of a server's certificate, for the program to decide on.
public struct ServerTrustVerdict: Hashable, Sendable {
    /// The chain as the server sent it, leaf first.
    public let chain: [X509Certificate]
    /// Everything that speaks against it, each once; empty for a trusted server.
    public let reasons: [ServerTrustReason]

    /// A decision of `countersign trust allow --answer` speaks for it all the same.
    private let isExcepted: Bool

    /// There is a leaf, and nothing speaks against it, or the person has recorded by `countersign trust allow --answer`
    /// that this server's challenges are answered all the same.
    public var isTrusted: Bool { (reasons.isEmpty || isExcepted) && !chain.isEmpty }

    /// The server's own certificate.
    public var leaf: X509Certificate? { chain.first }

    init(_ trust: CountersignCertificates.ServerTrust, isExcepted: Bool = false) {
        self.isExcepted = isExcepted
        chain = trust.chain.map(X509Certificate.init)
        reasons = trust.reasons.map(ServerTrustReason.init)
    }
}

extension ServerTrustVerdict: CustomStringConvertible {
    /// `certificate expired 2026-01-01; certificate is for another host`, or `certificate trusted`.
    public var description: String {
        reasons.isEmpty && isTrusted ? "certificate trusted" : reasons.map(\.description).joined(separator: "; ")
    }
}

/// One reason that speaks against a server's certificate.
public struct ServerTrustReason: Hashable, Sendable {
    /// What kind of reason. More kinds may come: write a `default` where you switch.
    public enum Kind: Hashable, Sendable {
        /// The certificate or one of its issuers has expired.
        case expired
        /// The certificate or one of its issuers is not valid yet.
        case notYetValid
        /// It is for other hosts.
        case hostMismatch
        /// It signed itself.
        case selfSigned
        /// The chain does not end in a trust anchor.
        case unknownIssuer
        /// The server did not send an issuer that is needed.
        case incompleteChain
        /// The certificate or one of its issuers has been revoked.
        case revoked
        /// Key usage or extended key usage is not that of a TLS server, or of a certificate authority.
        case wrongPurpose
        /// Weaker than RSA 2048 or P-256.
        case weakKey
        /// Signed over a hash weaker than SHA-256.
        case weakSignature
        /// It is a certificate authority's own certificate.
        case authorityAsLeaf
        /// An issuer may not issue for such a name (RFC 5280 §4.2.1.10).
        case nameConstraint
        /// More issuers than one of them allows below itself (RFC 5280 §4.2.1.9).
        case pathLength
        /// Anything else; the description says what.
        case other
    }

    /// What kind of reason it is.
    public let kind: Kind
    /// A short sentence for people, lower case, without a full stop.
    public let description: String

    init(_ reason: ServerTrust.Reason) {
        description = reason.description
        kind =
            switch reason {
            case .expired: .expired
            case .notYetValid: .notYetValid
            case .hostMismatch: .hostMismatch
            case .selfSigned: .selfSigned
            case .unknownIssuer: .unknownIssuer
            case .incompleteChain: .incompleteChain
            case .revoked: .revoked
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
