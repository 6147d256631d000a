// SPDX-License-Identifier: Apache-2.0

/// Which of an authority's issuing certificates may vouch for a host. A host is looked up by hash, first itself and then the
/// names above it, so that the answer takes as long with ten thousand names as with one.
struct IssuerIndex {
    private var names: [String: Int] = [:]
    private var addresses: [IPAddress: Int] = [:]

    /// Of what each certificate permits.
    init(_ parts: [NameConstraints]) {
        for (place, part) in parts.enumerated() {
            for name in part.names { names[name] = place }
            for address in part.addresses { addresses[address] = place }
        }
    }

    /// The place of the certificate that permits the host: as one of its names, below one, or as one of its addresses. Nil
    /// where none does.
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
