// SPDX-License-Identifier: Apache-2.0

/// Finds the issuing certificate that permits a host. A host is looked up by hash, first itself, then each parent
/// domain, so that the time does not depend on the number of names.
struct IssuerIndex {
    private var names: [String: Int] = [:]
    private var addresses: [IPAddress: Int] = [:]

    /// From the name constraints of each certificate.
    init(_ parts: [NameConstraints]) {
        for (place, part) in parts.enumerated() {
            for name in part.names { names[name] = place }
            for address in part.addresses { addresses[address] = place }
        }
    }

    /// The index of the certificate that permits the host as one of its names, below one of them, or as one of its
    /// addresses; nil if none does.
    func place(of host: String) -> Int? {
        if let address = IPAddress(text: host) { return addresses[address] }
        let host = host.lowercased()
        guard NameConstraints.isHostName(host) else { return nil }
        var rest = host[...]
        while true {
            if let place = names[String(rest)] { return place }
            guard let dot = rest.firstIndex(of: ".") else { return nil }
            rest = rest[dot...].dropFirst()
        }
    }
}
