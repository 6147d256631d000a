// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The hosts that one issuing certificate permits (RFC 5280 §4.2.1.10): names, each with all subdomains, because the
/// standard cannot exclude them, and single addresses.
struct NameConstraints: Equatable {
    /// Host names in lower case, sorted.
    let names: [String]
    /// In the order of their bytes.
    let addresses: [IPAddress]

    /// The extension's value. Every name type is constrained: without names, only `invalid` (RFC 2606 §2) is permitted;
    /// an address family without addresses is excluded.
    var der: [UInt8] {
        let shown = names.isEmpty ? ["invalid"] : names
        let permitted = shown.flatMap(Self.subtree(of:)) + addresses.flatMap(Self.subtree(of:))
        let excluded = [4, 16].filter { length in !addresses.contains { $0.bytes.count == length } }
            .map { DEREncoding.tagged(7, [UInt8](repeating: 0, count: $0 * 2)) }
        var lists = [DEREncoding.tagged(0, constructed: true, permitted)]
        if !excluded.isEmpty {
            lists.append(DEREncoding.tagged(1, constructed: true, excluded.flatMap { DEREncoding.sequence([$0]) }))
        }
        return DEREncoding.sequence(lists)
    }

    static func subtree(of name: String) -> [UInt8] {
        DEREncoding.sequence([DEREncoding.tagged(2, Array(name.utf8))])
    }

    static func subtree(of address: IPAddress) -> [UInt8] {
        let mask = [UInt8](repeating: 0xFF, count: address.bytes.count)
        return DEREncoding.sequence([DEREncoding.tagged(7, address.bytes + mask)])
    }

    /// Whether the text consists of labels of letters, digits, hyphens and underscores, and has at most 253 characters.
    static func isHostName(_ text: String) -> Bool {
        text.utf8.count <= 253
            && text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.utf8.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                        default: false
                        }
                    }
            }
    }
}

extension NameConstraints {
    /// The constraints in the certificate's critical extension; nil if it has none, or one that this type would not
    /// write.
    init?(of certificate: Certificate) {
        guard let value = certificate.extensionValue(NID_name_constraints), value.isCritical else { return nil }
        var names: [String] = []
        var addresses: [IPAddress] = []
        let understood = certificate.withX509 { x509 -> Bool in
            guard let found = X509_get_ext_d2i(x509, NID_name_constraints, nil, nil) else { return false }
            let constraints = found.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
            defer { NAME_CONSTRAINTS_free(constraints) }
            let permitted = constraints.pointee.permittedSubtrees
            for index in 0..<max(0, OPENSSL_sk_num(permitted)) {
                guard let entry = OPENSSL_sk_value(permitted, index) else { return false }
                var type: Int32 = -1
                let base = entry.assumingMemoryBound(to: GENERAL_SUBTREE.self).pointee.base
                guard let content = GENERAL_NAME_get0_value(base, &type), type == GEN_DNS || type == GEN_IPADD else {
                    return false
                }
                let bytes = Certificate.bytes(of: UnsafePointer(content.assumingMemoryBound(to: ASN1_STRING.self)))
                if type == GEN_DNS {
                    names.append(String(decoding: bytes, as: UTF8.self))
                } else if let address = IPAddress(bytes: Array(bytes.prefix(bytes.count / 2))) {
                    addresses.append(address)
                }
            }
            return true
        }
        self.init(names: names == ["invalid"] ? [] : names, addresses: addresses)
        guard understood, der == value.bytes else { return nil }
    }
}
