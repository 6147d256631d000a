// SPDX-License-Identifier: Apache-2.0

extension NameConstraints {
    /// The maximum encoded size of the hosts of one part. It keeps the certificate, which every handshake contains,
    /// below 8 KiB. OpenSSL clients reject chains of 100 KiB, Java clients chains of 32 KiB.
    static let partLimitBytes = 7 << 10

    /// Splits canonical host names, `*.name` and IP addresses into as few parts as the limit allows, sorted names
    /// first, then addresses. Throws `unsupported` for anything that is not a host.
    static func parts(permitting hosts: [String]) throws(CertificateError) -> [NameConstraints] {
        var names: Set<String> = []
        var addresses: Set<IPAddress> = []
        for host in hosts {
            if let address = IPAddress(text: host) {
                addresses.insert(address)
            } else {
                let name = host.hasPrefix("*.") ? String(host.dropFirst(2)) : host
                guard isHostName(name) else {
                    throw CertificateError(.unsupported, "\"\(host)\" is neither a host name nor an IP address")
                }
                names.insert(name.lowercased())
            }
        }
        var filling = Filling()
        for name in names.sorted() { filling.add(name) }
        for address in addresses.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }) { filling.add(address) }
        return filling.finished()
    }

    /// Builds the parts; the last one is open for more hosts.
    private struct Filling {
        private var full: [NameConstraints] = []
        private var names: [String] = []
        private var addresses: [IPAddress] = []
        private var size = 0

        mutating func add(_ name: String) {
            makeRoom(for: subtree(of: name))
            names.append(name)
        }

        mutating func add(_ address: IPAddress) {
            makeRoom(for: subtree(of: address))
            addresses.append(address)
        }

        private mutating func makeRoom(for subtree: [UInt8]) {
            if size + subtree.count > partLimitBytes { endPart() }
            size += subtree.count
        }

        private mutating func endPart() {
            full.append(NameConstraints(names: names, addresses: addresses))
            (names, addresses, size) = ([], [], 0)
        }

        /// At least one part.
        consuming func finished() -> [NameConstraints] {
            endPart()
            return full
        }
    }
}
