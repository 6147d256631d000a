// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Requirements for every certificate below the anchor that OpenSSL's strict validation does not check (RFC 5280 §4.2,
/// RFC 9525, and the minimum of RSA 2048, P-256 and SHA-256).
enum CertificateRequirements {
    /// The reasons against one certificate of a path.
    static func reasons(against certificate: Certificate, isLeaf: Bool) -> [ServerTrust.Reason] {
        var reasons: [ServerTrust.Reason] = []
        certificate.withX509 { x509 in
            if !isStrong(keyOf: x509) { reasons.append(.weakKey) }
            if !isStrong(signatureOf: x509), X509_self_signed(x509, 1) != 1 { reasons.append(.weakSignature) }
        }
        if isLeaf {
            if certificate.isCertificateAuthority { reasons.append(.caAsLeaf) }
            if !isForServersOnly(certificate) { reasons.append(.wrongPurpose) }
        }
        reasons += faults(of: certificate, isLeaf: isLeaf).map { .other("certificate not accepted: \($0)") }
        return reasons
    }

    private static func isStrong(keyOf x509: OpaquePointer) -> Bool {
        X509_get0_pubkey(x509).map { KeyKind(of: $0).isStrongEnough } ?? false
    }

    /// Whether the signature uses SHA-256 or better, or a scheme with a built-in hash (Ed25519, Ed448).
    private static func isStrong(signatureOf x509: OpaquePointer) -> Bool {
        var hash: Int32 = NID_undef
        var key: Int32 = NID_undef
        var bits: Int32 = 0
        guard X509_get_signature_info(x509, &hash, &key, &bits, nil) == 1 else { return false }
        return hash == NID_undef ? [NID_ED25519, NID_ED448].contains(key) : bits >= 128
    }

    /// Whether the extended key usage includes serverAuth and not anyExtendedKeyUsage.
    private static func isForServersOnly(_ certificate: Certificate) -> Bool {
        certificate.withX509 { x509 in
            guard X509_get_extension_flags(x509) & UInt32(EXFLAG_XKUSAGE) != 0 else { return false }
            let usage = X509_get_extended_key_usage(x509)
            return usage & UInt32(XKU_SSL_SERVER) != 0 && usage & UInt32(XKU_ANYEKU) == 0
        }
    }

    private static func faults(of certificate: Certificate, isLeaf: Bool) -> [String] {
        var faults: [String] = []
        let serial = certificate.serialNumberHex
        if serial.hasPrefix("-") || serial.allSatisfy({ $0 == "0" }) { faults.append("serial number is not positive") }
        if serial.count > 40 { faults.append("serial number is longer than 20 bytes") }
        if certificate.extensionValue(NID_info_access)?.isCritical == true {
            faults.append("authority information access is critical")
        }
        if certificate.extensionValue(NID_policy_constraints)?.isCritical == false {
            faults.append("policy constraints are not critical")
        }
        if let constraints = certificate.extensionValue(NID_name_constraints) {
            if isLeaf { faults.append("name constraints on a certificate that is not a CA's") }
            if constraints.bytes == [0x30, 0x00] { faults.append("name constraints are empty") }
        }
        return faults
    }
}
