// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// An extension of the profile (RFC 5280 §4.2), and the rules for it that every certificate has to follow. OpenSSL
/// decodes only some of them during validation, and ignores the others if they are malformed.
struct ProfiledExtension {
    private let identifier: Int32
    private let name: String
    /// Of RFC 5280.
    private let section: String
    private var criticality = Criticality.free
    /// Whether `SEQUENCE {}` is a valid value.
    private var mayBeEmpty = false

    private enum Criticality {
        case free
        case always
        case never
    }

    private static let profile = [
        Self(
            identifier: NID_authority_key_identifier, name: "authority key identifier", section: "4.2.1.1",
            mayBeEmpty: true),
        Self(identifier: NID_subject_key_identifier, name: "subject key identifier", section: "4.2.1.2"),
        Self(identifier: NID_key_usage, name: "key usage", section: "4.2.1.3"),
        Self(identifier: NID_certificate_policies, name: "certificate policies", section: "4.2.1.4"),
        Self(identifier: NID_policy_mappings, name: "policy mappings", section: "4.2.1.5"),
        Self(identifier: NID_subject_alt_name, name: "subject alternative name", section: "4.2.1.6"),
        Self(identifier: NID_issuer_alt_name, name: "issuer alternative name", section: "4.2.1.7"),
        Self(identifier: NID_basic_constraints, name: "basic constraints", section: "4.2.1.9", mayBeEmpty: true),
        // NameConstraints reports empty ones itself.
        Self(identifier: NID_name_constraints, name: "name constraints", section: "4.2.1.10", mayBeEmpty: true),
        Self(
            identifier: NID_policy_constraints, name: "policy constraints", section: "4.2.1.11",
            criticality: .always),
        Self(identifier: NID_ext_key_usage, name: "extended key usage", section: "4.2.1.12"),
        Self(identifier: NID_crl_distribution_points, name: "CRL distribution points", section: "4.2.1.13"),
        Self(identifier: NID_inhibit_any_policy, name: "inhibit anyPolicy", section: "4.2.1.14"),
        Self(identifier: NID_freshest_crl, name: "freshest CRL", section: "4.2.1.15"),
        Self(
            identifier: NID_info_access, name: "authority information access", section: "4.2.2.1",
            criticality: .never),
        Self(identifier: NID_sinfo_access, name: "subject information access", section: "4.2.2.2"),
    ]

    /// The rules that the certificate's extensions break.
    static func faults(of certificate: Certificate) -> [String] {
        defer { ERR_clear_error() }
        return certificate.withX509 { x509 in
            var faults: [String] = []
            for item in profile {
                let index = X509_get_ext_by_NID(x509, item.identifier, -1)
                guard index >= 0, let found = X509_get_ext(x509, index) else { continue }
                if let fault = item.fault(of: found) {
                    let verb = item.name.hasSuffix("s") && !item.name.hasSuffix("ss") ? "are" : "is"
                    faults.append("\(item.name) \(verb) \(fault) (RFC 5280, section \(item.section))")
                }
            }
            if repeatsAnExtension(x509) { faults.append("it has an extension twice (RFC 5280, section 4.2)") }
            return faults
        }
    }

    private func fault(of found: OpaquePointer) -> String? {
        if !isReadable(found) { return "malformed" }
        let isCritical = X509_EXTENSION_get_critical(found) == 1
        return switch criticality {
        case .always where !isCritical: "not critical"
        case .never where isCritical: "critical"
        default: nil
        }
    }

    /// Whether the value is of the extension's type, without trailing bytes.
    private func isReadable(_ found: OpaquePointer) -> Bool {
        guard let value = X509_EXTENSION_get_data(found), let method = X509V3_EXT_get(found),
            let type = method.pointee.it
        else { return false }
        let bytes = Certificate.bytes(of: value)
        guard mayBeEmpty || bytes != [0x30, 0x00], let items = try? DERItem.items(in: bytes), items.count == 1,
            let decoded = X509V3_EXT_d2i(found)
        else { return false }
        ASN1_item_free(OpaquePointer(decoded), type())
        return true
    }

    private static func repeatsAnExtension(_ x509: OpaquePointer) -> Bool {
        (0..<X509_get_ext_count(x509)).contains { index in
            X509_get_ext(x509, index).map { found in
                X509_get_ext_by_OBJ(x509, X509_EXTENSION_get_object(found), index) >= 0
            } ?? false
        }
    }
}
