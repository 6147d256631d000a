// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Requirements that OpenSSL's strict validation does not check (RFC 5280 §4.2, RFC 9525, and the minimum of RSA 2048,
/// P-256 and SHA-256). A trust anchor is only checked for its name constraints, because nothing else in it takes part
/// in the validation of a path (RFC 5280 §6.1).
///
/// The text of a reason names the rule, for a report to the issuer. It is printable ASCII, because it is sent in a
/// field of the response.
enum CertificateRequirements {
    /// The role of a certificate in a path.
    enum Role {
        case leaf
        case issuer
        case anchor
    }

    /// The reasons against one certificate of a path. Checks whether it is self-signed within the budget.
    static func reasons(
        against certificate: Certificate, as role: Role, within budget: VerificationBudget = VerificationBudget()
    ) -> [ServerTrust.Reason] {
        var reasons: [ServerTrust.Reason] = []
        if role != .anchor {
            if !certificate.hasStrongKey { reasons.append(.weakKey) }
            if !certificate.hasStrongSignature, !isSelfSigned(certificate, budget) { reasons.append(.weakSignature) }
        }
        if role == .leaf {
            if certificate.isCertificateAuthority { reasons.append(.caAsLeaf) }
            if !isForServersOnly(certificate) { reasons.append(.wrongPurpose) }
        }
        let subject =
            switch role {
            case .leaf: "certificate not accepted"
            case .issuer: "issuer not accepted"
            case .anchor: "trust anchor not accepted"
            }
        return reasons + faults(of: certificate, as: role).map { .other("\(subject): \($0)") }
    }

    /// False if the budget does not permit to find out.
    private static func isSelfSigned(_ certificate: Certificate, _ budget: VerificationBudget) -> Bool {
        guard certificate.withX509({ X509_self_signed($0, 0) }) == 1, let cost = certificate.signatureCost,
            budget.spend(cost)
        else { return false }
        return certificate.withX509 { X509_self_signed($0, 1) } == 1
    }

    /// Whether the extended key usage includes serverAuth and not anyExtendedKeyUsage.
    private static func isForServersOnly(_ certificate: Certificate) -> Bool {
        certificate.withX509 { x509 in
            guard X509_get_extension_flags(x509) & UInt32(EXFLAG_XKUSAGE) != 0 else { return false }
            let usage = X509_get_extended_key_usage(x509)
            return usage & UInt32(XKU_SSL_SERVER) != 0 && usage & UInt32(XKU_ANYEKU) == 0
        }
    }

    private static func faults(of certificate: Certificate, as role: Role) -> [String] {
        var faults: [String] = []
        if role != .anchor {
            faults += serialFaults(of: certificate)
            faults += ProfiledExtension.faults(of: certificate)
            faults += alternativeNameFaults(of: certificate)
        }
        if role == .leaf { faults += leafFaults(of: certificate) }
        if certificate.extensionValue(NID_name_constraints) != nil {
            faults += role == .leaf ? [NameConstraints.notOfAnAuthority] : NameConstraints.faults(of: certificate)
        }
        return faults
    }

    private static func serialFaults(of certificate: Certificate) -> [String] {
        let serial = certificate.serialNumberHex
        var faults: [String] = []
        if serial.hasPrefix("-") || serial.allSatisfy({ $0 == "0" }) {
            faults.append("serial number is not positive (RFC 5280, section 4.1.2.2)")
        }
        if serial.count > 40 { faults.append("serial number is longer than 20 bytes (RFC 5280, section 4.1.2.2)") }
        return faults
    }

    /// Name constraints cannot be applied to a name that no host can have.
    private static func alternativeNameFaults(of certificate: Certificate) -> [String] {
        guard let value = certificate.extensionValue(NID_subject_alt_name),
            let names = try? DERItem.single(value.bytes, tag: DERItem.sequence).items()
        else { return [] }
        var faults: [String] = []
        if names.contains(where: { $0.tag == 0x82 && !isHostName($0.content) }) {
            faults.append("a DNS name in it is not a host name (RFC 5280, section 4.2.1.6)")
        }
        if names.contains(where: { $0.tag == 0x87 && ![4, 16].contains($0.content.count) }) {
            faults.append("an IP address in it is not 4 or 16 bytes long (RFC 5280, section 4.2.1.6)")
        }
        return faults
    }

    /// Whether the name consists of labels of printable ASCII without spaces. Accepts underscores and asterisks, which
    /// the preferred name syntax (RFC 1034 §3.5) does not have, because many certificates contain them.
    private static func isHostName(_ name: [UInt8]) -> Bool {
        name.count <= 253
            && name.split(separator: 0x2E, omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.count) && label.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            }
    }

    private static func leafFaults(of certificate: Certificate) -> [String] {
        var faults: [String] = []
        if certificate.extensionValue(NID_ext_key_usage)?.isCritical == true {
            faults.append("extended key usage is critical (CA/Browser Forum Baseline Requirements, section 7.1.2.7.6)")
        }
        let hasSubject = certificate.withX509 { X509_NAME_entry_count(X509_get_subject_name($0)) > 0 }
        if hasSubject, certificate.extensionValue(NID_subject_alt_name)?.isCritical == true {
            faults.append("subject alternative name is critical beside a subject (RFC 5280, section 4.2.1.6)")
        }
        return faults
    }
}

extension Certificate {
    /// Whether the key meets the minimum strength.
    var hasStrongKey: Bool {
        withX509 { x509 in X509_get0_pubkey(x509).map { KeyKind(of: $0).isStrongEnough } ?? false }
    }

    /// Whether the signature uses SHA-256 or better, or a scheme with a built-in hash (Ed25519, Ed448).
    var hasStrongSignature: Bool {
        withX509 { x509 in
            var hash: Int32 = NID_undef
            var key: Int32 = NID_undef
            var bits: Int32 = 0
            guard X509_get_signature_info(x509, &hash, &key, &bits, nil) == 1 else { return false }
            return hash == NID_undef ? [NID_ED25519, NID_ED448].contains(key) : bits >= 128
        }
    }
}
