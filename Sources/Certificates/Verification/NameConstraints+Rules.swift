// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

extension NameConstraints {
    private static let rule = "(RFC 5280, section 4.2.1.10)"

    static let notOfAnAuthority = "name constraints on a certificate that is not a CA's \(rule)"

    /// The rules that a CA's name constraints break. OpenSSL applies such constraints nevertheless, but other verifiers
    /// disagree about their meaning. They need not be critical: the Baseline Requirements (§7.1.2.5.2) except them from
    /// that rule, and OpenSSL applies them in any case.
    static func faults(of certificate: Certificate) -> [String] {
        guard let value = certificate.extensionValue(NID_name_constraints) else { return [] }
        var faults: [String] = []
        do {
            let lists = try DERItem.single(value.bytes, tag: DERItem.sequence).items()
            let subtrees = try lists.map { try $0.items() }
            if subtrees.isEmpty || subtrees.contains(where: \.isEmpty) {
                faults.append("name constraints are empty \(rule)")
            }
            faults += Set(try subtrees.joined().compactMap { try fault(ofBase: $0.items().first) }).sorted()
        } catch {
            faults.append("name constraints are malformed \(rule)")
        }
        return faults
    }

    /// Whether a wildcard among the leaf's names matches a name that an issuer excludes: `*.example.com` for
    /// `a.example.com`. OpenSSL compares only the text of the wildcard, which is not in that subtree.
    static func exclude(wildcardsOf leaf: Certificate, issuers: some Sequence<Certificate>) -> Bool {
        let bases = Set(
            leaf.dnsNames.lazy.map { $0.lowercased() }.filter { $0.hasPrefix("*.") }.map { $0.dropFirst(2) })
        return !bases.isEmpty
            && issuers.contains { issuer in
                excludedNames(of: issuer).contains { name in
                    guard let dot = name.firstIndex(of: ".") else { return false }
                    return bases.contains(name[name.index(after: dot)...])
                }
            }
    }

    /// The DNS names of the excluded subtrees, in lower case. None if the constraints are malformed, which is a fault.
    private static func excludedNames(of certificate: Certificate) -> [String] {
        guard let value = certificate.extensionValue(NID_name_constraints),
            let lists = try? DERItem.single(value.bytes, tag: DERItem.sequence).items(),
            let excluded = lists.first(where: { $0.tag == 0xA1 }), let subtrees = try? excluded.items()
        else { return [] }
        return subtrees.compactMap { subtree in
            guard let base = try? subtree.items().first, base.tag == 0x82 else { return nil }
            return String(decoding: base.content, as: UTF8.self).lowercased()
        }
    }

    /// An empty DNS name matches all names.
    private static func fault(ofBase base: DERItem?) -> String? {
        switch base?.tag {
        case nil:
            return "a name constraint has no name \(rule)"
        case 0x82?:
            let name = base?.content ?? []
            if name.first == 0x2E { return "a DNS name constraint begins with a period \(rule)" }
            let isValid = name.isEmpty || isHostName(String(decoding: name, as: UTF8.self))
            return isValid ? nil : "a DNS name constraint is not a host name \(rule)"
        case 0x87?:
            return [8, 32].contains(base?.content.count) ? nil : "an IP address constraint has no mask \(rule)"
        default:
            return nil
        }
    }
}
