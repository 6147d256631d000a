// SPDX-License-Identifier: Apache-2.0

/// The result of verifying an origin's chain, on which the caller decides.
package struct ServerTrust: Sendable, Equatable {
    /// Why a chain is not trusted.
    package enum Reason: Hashable, Sendable {
        /// Seconds since 1970; of the leaf or of an issuer.
        case expired(notAfter: Int64)
        /// Seconds since 1970; of the leaf or of an issuer.
        case notYetValid(notBefore: Int64)
        /// No subject alternative name matches the host.
        case hostMismatch
        /// The leaf is self-signed.
        case selfSigned
        /// The chain does not end in a trust anchor: its root is not known.
        case unknownIssuer
        /// The server sent no issuer of its own certificate, which names a URL of its issuer's certificate (RFC 5280
        /// §4.2.2.1).
        case incompleteChain
        /// Of the leaf or of an issuer; ``ServerTrust/revocation`` has the source, ``ServerTrust/revoked`` the
        /// certificate.
        case revoked
        /// The site requires a revocation status, and ``ServerTrust/revocation`` says why it is missing.
        case revocationUnknown
        /// Key usage or extended key usage is wrong for a TLS server, or for a CA.
        case wrongPurpose
        /// Weaker than RSA 2048 or P-256, DSA, or an unusual size.
        case weakKey
        /// Signed with a hash weaker than SHA-256.
        case weakSignature
        /// The leaf is a CA certificate.
        case caAsLeaf
        /// An issuer's name constraints do not permit the name (RFC 5280 §4.2.1.10).
        case nameConstraint
        /// There are more issuers below a CA than its path length permits (RFC 5280 §4.2.1.9).
        case pathLength
        /// Any other reason, as a short sentence.
        case other(String)
    }

    /// The source of a revocation status.
    package enum RevocationSource: Equatable, Sendable {
        /// The OCSP response that the origin sent with its certificate (RFC 6066 §8, RFC 6960).
        case stapledOCSP
        /// A local revocation list (RFC 5280 §5).
        case revocationList
        /// The response of an OCSP responder that the certificate names.
        case responder(url: String)
        /// A revocation list that the certificate names.
        case distributedList(url: String)
    }

    /// Whether the certificate is revoked, or that this is unknown.
    package enum Revocation: Equatable, Sendable {
        /// The leaf is not revoked.
        case good(by: RevocationSource)
        /// The leaf or one of its issuers is revoked.
        case revoked(by: RevocationSource)
        /// Undetermined, with a short sentence that says why. Counts against the chain only if the site requires a
        /// status, see ``Reason/revocationUnknown``.
        case unknown(String)
    }

    /// The chain that the origin sent, leaf first.
    package let chain: [Certificate]
    /// All reasons against the chain, without duplicates, those of the leaf first.
    package let reasons: [Reason]
    /// ``Revocation/revoked(by:)`` if and only if ``reasons`` contains ``Reason/revoked``.
    package let revocation: Revocation
    /// The certificate that is revoked, if there is one.
    package let revoked: RevokedCertificate?

    package init(
        chain: [Certificate], reasons: [Reason], revocation: Revocation = .unknown("not asked"),
        revoked: RevokedCertificate? = nil
    ) {
        self.chain = chain
        self.reasons = reasons
        self.revocation = revocation
        self.revoked = revoked
    }

    /// Whether there is a leaf and no reason against it.
    package var isTrusted: Bool { reasons.isEmpty && !chain.isEmpty }

    /// The origin's own certificate.
    package var leaf: Certificate? { chain.first }
}

extension ServerTrust: CustomStringConvertible {
    /// `certificate expired 2026-01-01; certificate is for another host`, or `certificate trusted`.
    package var description: String {
        isTrusted ? "certificate trusted" : texts.joined(separator: "; ")
    }
}

extension ServerTrust.Reason: CustomStringConvertible {
    package var description: String {
        switch self {
        case .expired(let notAfter): "certificate expired \(CalendarDate(secondsSince1970: notAfter))"
        case .notYetValid(let notBefore): "certificate not valid before \(CalendarDate(secondsSince1970: notBefore))"
        case .hostMismatch: "certificate is for another host"
        case .selfSigned: "certificate is self-signed"
        case .unknownIssuer: "certificate issuer unknown"
        case .incompleteChain: "certificate chain incomplete"
        case .revoked: "certificate revoked"
        case .revocationUnknown: "revocation status unknown"
        case .wrongPurpose: "certificate is for another purpose"
        case .weakKey: "certificate key too weak"
        case .weakSignature: "certificate signature too weak"
        case .caAsLeaf: "certificate is a certificate authority's"
        case .nameConstraint: "certificate outside its issuer's name constraints"
        case .pathLength: "certificate chain longer than its issuers allow"
        case .other(let text): text
        }
    }
}

/// A revoked certificate of a chain, and who revoked it when and why.
package struct RevokedCertificate: Hashable, Sendable {
    /// The subject; empty for a certificate without one.
    package let subject: String
    package let issuer: String
    /// Whether it is the server's own.
    package let isLeaf: Bool
    package let entry: RevocationEntry

    package init(_ certificate: Certificate, isLeaf: Bool, _ entry: RevocationEntry) {
        subject = certificate.subject
        issuer = certificate.issuer
        self.isLeaf = isLeaf
        self.entry = entry
    }

    /// `certificate revoked 2026-01-01 by "CN=Corp CA" (key compromise)`, or
    /// `certificate of the issuer "CN=Corp CA" revoked 2026-01-01 by "CN=Corp Root"`.
    package var text: String {
        let name = isLeaf ? "certificate" : "certificate of the issuer \"\(subject)\""
        let date = entry.date.map { " \(CalendarDate(secondsSince1970: $0))" } ?? ""
        return "\(name) revoked\(date) by \"\(issuer)\"" + (entry.reason.map { " (\($0.text))" } ?? "")
    }
}

extension ServerTrust.RevocationSource: CustomStringConvertible {
    package var description: String {
        switch self {
        case .stapledOCSP: "stapled OCSP response"
        case .revocationList: "revocation list in Certs/anchors"
        case .responder(let url): "OCSP responder \(url)"
        case .distributedList(let url): "revocation list \(url)"
        }
    }
}

extension ServerTrust.Revocation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .good(let source): "good, by the \(source)"
        case .revoked(let source): "revoked, by the \(source)"
        case .unknown(let why): "unknown: \(why)"
        }
    }
}

/// A day of the proleptic Gregorian calendar in UTC, in ISO 8601 format.
struct CalendarDate: CustomStringConvertible {
    let year: Int64
    let month: Int64
    let day: Int64

    init(secondsSince1970 seconds: Int64) {
        // Days since 0000-03-01, so that the leap day is the last of its year; 719,468 days before 1970.
        let days = (seconds.dividingFloor(by: 86_400)) + 719_468
        let era = days.dividingFloor(by: 146_097)
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    var description: String {
        func padded(_ number: Int64, _ width: Int) -> String {
            let digits = String(number.magnitude)
            return (number < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }
}

extension Int64 {
    fileprivate func dividingFloor(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
