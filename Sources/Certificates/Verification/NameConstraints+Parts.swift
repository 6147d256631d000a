// SPDX-License-Identifier: Apache-2.0

extension NameConstraints {
    /// The most that the hosts of one part take in their certificate. That stays below 8 KiB, which every handshake carries;
    /// a client of OpenSSL gives up on a chain of 100 KiB, one of Java on 32.
    static let partLimitBytes = 7 << 10

    /// Of host names, `*.name` and IP addresses, canonical all of them: one part where that is within the limit, else as many
    /// as it takes, the names in their order and the addresses behind them. `unsupported` for what is no host.
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

    /// Parts on their way, of which the last has room for more.
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

        /// One part at least.
        consuming func finished() -> [NameConstraints] {
            endPart()
            return full
        }
    }
}
