// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

extension NameConstraints {
    private static let rule = "(RFC 5280, section 4.2.1.10)"

    static let notOfAnAuthority = "name constraints on a certificate that is not a CA's \(rule)"

    /// The rules that a CA's name constraints break. OpenSSL applies such constraints nevertheless, but other verifiers
    /// ignore those that are not critical, and disagree about the meaning of the others.
    static func faults(of certificate: Certificate) -> [String] {
        guard let value = certificate.extensionValue(NID_name_constraints) else { return [] }
        var faults: [String] = []
        if !value.isCritical { faults.append("name constraints are not critical \(rule)") }
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

    /// An empty DNS name stands for all names.
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
