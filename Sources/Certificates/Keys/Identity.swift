// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A client certificate with its private key, for answering a TLS CertificateRequest.
package struct Identity: Sendable {
    /// The name under which it is enrolled.
    package let name: String
    /// The certificate and its issuers, leaf first.
    package let chain: [Certificate]
    package let key: PrivateKey
    /// Whether a revocation list of this home revokes the certificate or one of its issuers.
    package private(set) var isRevoked = false
    /// Whether OpenSSL accepts the key and the chain. If it does not, a connection with the identity fails.
    package private(set) var isAcceptedByOpenSSL = true

    /// Throws `noCertificate` for an empty chain, `keyMismatch` if the key is not the leaf's.
    package init(name: String, chain: [Certificate], key: PrivateKey) throws(CertificateError) {
        guard let leaf = chain.first else {
            throw CertificateError(.noCertificate, "identity \"\(name)\" has no certificate")
        }
        guard key.matches(leaf) else {
            throw CertificateError(.keyMismatch, "the key of identity \"\(name)\" does not belong to its certificate")
        }
        self.name = name
        self.chain = chain
        self.key = key
    }

    /// The certificate that the key belongs to.
    package var leaf: Certificate { chain[0] }
}

extension Identity: Equatable {
    /// Compares name, chain and usability. Equal chains imply the same key.
    package static func == (left: Identity, right: Identity) -> Bool {
        left.name == right.name && left.chain == right.chain && left.isRevoked == right.isRevoked
            && left.isAcceptedByOpenSSL == right.isAcceptedByOpenSSL
    }
}

// MARK: Revocation

extension Identity {
    /// The identity with ``isRevoked`` determined from these lists. A list counts if the issuer in the chain or among
    /// `issuers` has signed it, or if its issuer is not known; an outdated list still revokes.
    package func checked(against lists: [RevocationList], issuers: [Certificate]) -> Identity {
        let known = chain.dropFirst() + issuers
        var checked = self
        checked.isRevoked = chain.contains { certificate in
            lists.contains { $0.revokes(certificate) && $0.isGenuine(knowing: known) }
        }
        return checked
    }

    /// The identity with ``isAcceptedByOpenSSL`` set.
    package func accepted(byOpenSSL isAccepted: Bool) -> Identity {
        var checked = self
        checked.isAcceptedByOpenSSL = isAccepted
        return checked
    }
}

// MARK: Choosing

extension Identity {
    /// Why an identity cannot answer a server's request.
    package enum Obstacle: Equatable, Sendable, CustomStringConvertible {
        case revoked
        /// The key or a signature of the chain is weaker than OpenSSL's security level permits.
        case notAcceptedByOpenSSL
        case expired(notAfter: Int64)
        case notYetValid(notBefore: Int64)
        /// The key usage or extended key usage is not that of a TLS client.
        case wrongPurpose
        /// No certificate of the chain is an accepted issuer or issued by one.
        case issuerNotAccepted
        /// The server accepts no signature algorithm of the key.
        case signatureNotAccepted

        package var description: String {
            switch self {
            case .revoked: "revoked"
            case .notAcceptedByOpenSSL: "its key or a signature of its chain is too weak for OpenSSL"
            case .expired(let notAfter): "expired \(CalendarDate(secondsSince1970: notAfter))"
            case .notYetValid(let notBefore): "not valid before \(CalendarDate(secondsSince1970: notBefore))"
            case .wrongPurpose: "not for client authentication"
            case .issuerNotAccepted: "not issued by a CA that the server accepts"
            case .signatureNotAccepted: "its key supports no signature algorithm that the server accepts"
            }
        }
    }

    /// The first obstacle to answering a server that accepts `acceptableIssuers` (names in DER) and
    /// `signatureAlgorithms` (SignatureScheme code points, RFC 8446 §4.2.3); an empty list of either accepts any.
    /// `time` is in seconds since 1970.
    package func obstacle(
        acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64
    ) -> Obstacle? {
        if isRevoked { return .revoked }
        if !isAcceptedByOpenSSL { return .notAcceptedByOpenSSL }
        if leaf.notAfter < time { return .expired(notAfter: leaf.notAfter) }
        if leaf.notBefore > time { return .notYetValid(notBefore: leaf.notBefore) }
        if !leaf.allowsDigitalSignature || !leaf.allowsClientAuthentication { return .wrongPurpose }
        if !acceptableIssuers.isEmpty, !isIssued(byOneOf: acceptableIssuers) { return .issuerNotAccepted }
        if !signatureAlgorithms.isEmpty, !signatureAlgorithms.contains(where: key.kind.signs) {
            return .signatureNotAccepted
        }
        return nil
    }

    /// Whether there is no obstacle.
    package func fits(
        acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64
    ) -> Bool {
        obstacle(acceptableIssuers: acceptableIssuers, signatureAlgorithms: signatureAlgorithms, at: time) == nil
    }

    /// The result of ``choose(among:acceptableIssuers:signatureAlgorithms:at:preferring:)``.
    package enum Choice: Equatable, Sendable {
        /// The first of `fitting` identities that fit.
        case identity(Identity, fitting: Int)
        /// No identity fits, with a short sentence that says why.
        case none(String)
    }

    /// If `name` is given, only the identity of that name is considered. Otherwise chooses the first one that fits, so
    /// that another one at the end of the list does not change the choice.
    package static func choose(
        among identities: [Identity], acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64,
        preferring name: String? = nil
    ) -> Choice {
        let candidates = name.map { name in identities.filter { $0.name == name } } ?? identities
        guard !candidates.isEmpty else { return .none(name.map { "no identity \"\($0)\"" } ?? "no identity") }
        var obstacles: [String] = []
        var fitting: [Identity] = []
        for identity in candidates {
            let obstacle = identity.obstacle(
                acceptableIssuers: acceptableIssuers, signatureAlgorithms: signatureAlgorithms, at: time)
            if let obstacle {
                obstacles.append("identity \"\(identity.name)\": \(obstacle)")
            } else {
                fitting.append(identity)
            }
        }
        return fitting.first.map { .identity($0, fitting: fitting.count) } ?? .none(obstacles.joined(separator: "; "))
    }

    /// Whether the subject or issuer of a certificate in the chain is among `accepted` (RFC 8446 §4.2.4).
    private func isIssued(byOneOf accepted: [[UInt8]]) -> Bool {
        let names = chain.flatMap { [$0.subjectDER, $0.issuerDER] }
        return accepted.contains { DistinguishedName.equal($0, oneOf: names) }
    }
}

extension KeyKind {
    /// Whether a key of this kind supports the SignatureScheme (RFC 8446 §4.2.3), in TLS 1.2 or 1.3.
    func signs(_ scheme: UInt16) -> Bool {
        switch self {
        case .rsa: [0x0401, 0x0501, 0x0601, 0x0804, 0x0805, 0x0806].contains(scheme)
        case .rsaPSS: [0x0809, 0x080A, 0x080B].contains(scheme)
        case .ec: [0x0403, 0x0503, 0x0603].contains(scheme)
        case .ed25519: scheme == 0x0807
        case .ed448: scheme == 0x0808
        case .dsa, .other: false
        }
    }
}

/// Compares distinguished names in DER under the rules of RFC 5280 §7.1.
private enum DistinguishedName {
    /// Whether `name` equals one of `others`, ignoring string type, case and spacing.
    static func equal(_ name: [UInt8], oneOf others: [[UInt8]]) -> Bool {
        if others.contains(name) { return true }
        guard let parsed = parse(name) else { return false }
        defer { X509_NAME_free(parsed) }
        return others.contains { other in
            guard let other = parse(other) else { return false }
            defer { X509_NAME_free(other) }
            return X509_NAME_cmp(parsed, other) == 0
        }
    }

    private static func parse(_ name: [UInt8]) -> OpaquePointer? {
        defer { ERR_clear_error() }
        return name.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509_NAME(nil, &position, buffer.count)
        }
    }
}
