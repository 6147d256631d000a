// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A client certificate with its private key: what a TLS CertificateRequest is answered with.
package struct Identity: Sendable {
    /// The name it was enrolled under.
    package let name: String
    /// The certificate, its issuer, and so on; leaf first.
    package let chain: [Certificate]
    package let key: PrivateKey

    /// `noCertificate` for an empty chain, `keyMismatch` when the key is not the leaf's.
    package init(name: String, chain: [Certificate], key: PrivateKey) throws(CertificateError) {
        guard let leaf = chain.first else {
            throw CertificateError(.noCertificate, "identity \"\(name)\" has no certificate")
        }
        guard key.matches(leaf) else {
            throw CertificateError(.keyMismatch, "the key of identity \"\(name)\" is not its certificate's")
        }
        self.name = name
        self.chain = chain
        self.key = key
    }

    /// The certificate that the key belongs to.
    package var leaf: Certificate { chain[0] }
}

extension Identity: Equatable {
    /// The same name and chain, and so the same key.
    package static func == (left: Identity, right: Identity) -> Bool {
        left.name == right.name && left.chain == right.chain
    }
}

// MARK: Choosing

extension Identity {
    /// Why an identity cannot answer a server's request.
    package enum Obstacle: Equatable, Sendable, CustomStringConvertible {
        case expired(notAfter: Int64)
        case notYetValid(notBefore: Int64)
        /// The key usage or extended key usage is not that of a TLS client.
        case wrongPurpose
        /// No certificate of the chain is one that the server accepts, or is issued by one.
        case issuerNotAccepted
        /// The server takes no signature that the key can make.
        case signatureNotAccepted

        package var description: String {
            switch self {
            case .expired(let notAfter): "expired \(CalendarDate(secondsSince1970: notAfter))"
            case .notYetValid(let notBefore): "not valid before \(CalendarDate(secondsSince1970: notBefore))"
            case .wrongPurpose: "not for client authentication"
            case .issuerNotAccepted: "not of an issuer that the server accepts"
            case .signatureNotAccepted: "its key makes no signature that the server accepts"
            }
        }
    }

    /// The first obstacle to answering a server that accepts `acceptableIssuers` (names in DER) and `signatureAlgorithms`
    /// (SignatureScheme code points, RFC 8446 §4.2.3); an empty list of either accepts any. `time` is in seconds since 1970.
    package func obstacle(
        acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64
    ) -> Obstacle? {
        if leaf.notAfter < time { return .expired(notAfter: leaf.notAfter) }
        if leaf.notBefore > time { return .notYetValid(notBefore: leaf.notBefore) }
        if !leaf.allowsDigitalSignature || !leaf.allowsClientAuthentication { return .wrongPurpose }
        if !acceptableIssuers.isEmpty, !isIssued(byOneOf: acceptableIssuers) { return .issuerNotAccepted }
        if !signatureAlgorithms.isEmpty, !signatureAlgorithms.contains(where: key.kind.signs) {
            return .signatureNotAccepted
        }
        return nil
    }

    /// There is no obstacle.
    package func fits(
        acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64
    ) -> Bool {
        obstacle(acceptableIssuers: acceptableIssuers, signatureAlgorithms: signatureAlgorithms, at: time) == nil
    }

    /// What ``choose(among:acceptableIssuers:signatureAlgorithms:at:preferring:)`` came to.
    package enum Choice: Equatable, Sendable {
        case identity(Identity)
        /// None fits; a short sentence says why.
        case none(String)
    }

    /// The identity named `name`, and no other, if a name is given; else, of those that fit, the one that is valid longest, and
    /// of several such the first by name.
    package static func choose(
        among identities: [Identity], acceptableIssuers: [[UInt8]], signatureAlgorithms: [UInt16] = [], at time: Int64,
        preferring name: String? = nil
    ) -> Choice {
        let candidates = name.map { name in identities.filter { $0.name == name } } ?? identities
        guard !candidates.isEmpty else { return .none(name.map { "no identity \"\($0)\"" } ?? "no identity") }
        var obstacles: [String] = []
        var best: Identity?
        for identity in candidates.sorted(by: { $0.name < $1.name }) {
            let obstacle = identity.obstacle(
                acceptableIssuers: acceptableIssuers, signatureAlgorithms: signatureAlgorithms, at: time)
            if let obstacle {
                obstacles.append("identity \"\(identity.name)\": \(obstacle)")
            } else if identity.leaf.notAfter > best?.leaf.notAfter ?? .min {
                best = identity
            }
        }
        return best.map { .identity($0) } ?? .none(obstacles.joined(separator: "; "))
    }

    /// A name of `accepted` is the subject or the issuer of a certificate of the chain (RFC 8446 §4.2.4).
    private func isIssued(byOneOf accepted: [[UInt8]]) -> Bool {
        let names = chain.flatMap { [$0.subjectDER, $0.issuerDER] }
        return accepted.contains { DistinguishedName.equal($0, oneOf: names) }
    }
}

extension KeyKind {
    /// A key of this kind can sign by the SignatureScheme (RFC 8446 §4.2.3), under TLS 1.2 or 1.3.
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

/// Names in DER, compared as RFC 5280 §7.1 has it.
private enum DistinguishedName {
    /// Equal bytes, or names that differ in string type, case or spacing only.
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
