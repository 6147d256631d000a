// SPDX-License-Identifier: Apache-2.0

/// Checks whether a certificate is for a host, by its subject alternative names only (RFC 9525 §6).
///
/// An IP address is compared with iPAddress names, a host name with dNSName names. A wildcard must be the whole
/// left-most label, matches exactly one label, and must not be directly below a public suffix or a single label.
struct HostMatch {
    let host: String
    let isPublicSuffix: (String) -> Bool

    func accepts(_ certificate: Certificate) -> Bool {
        if let address = IPAddress(text: host) {
            return certificate.ipAddresses.contains { IPAddress(text: $0) == address }
        }
        let host = host.lowercased()
        return !host.isEmpty && certificate.dnsNames.contains { accepts($0.lowercased(), for: host) }
    }

    private func accepts(_ name: String, for host: String) -> Bool {
        guard name.hasPrefix("*.") else { return name == host }
        let base = name.dropFirst(2)
        guard base.contains("."), !base.contains("*"), !isPublicSuffix(String(base)),
            let dot = host.firstIndex(of: "."), dot > host.startIndex
        else { return false }
        return host[host.index(after: dot)...] == base
    }
}
