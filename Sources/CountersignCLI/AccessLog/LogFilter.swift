// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// `--site` and `--refused` of `countersign log`.
struct LogFilter {
    /// Nil for every site.
    let site: Site?
    let isRefusedOnly: Bool

    /// A host, with or without a port; `*.corp.example` for the hosts below it.
    struct Site: Equatable {
        private let host: String
        private let port: UInt16?
        private let isWildcard: Bool

        init(parsing text: String) throws(HostNameError) {
            let rest = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
            let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
            isWildcard = authority.hasPrefix("*.")
            let parts = try Authority(parsing: isWildcard ? authority.dropFirst(2) : authority)
            host = try HostName(canonicalizing: parts.host, for: .forwarded).text
            port = parts.port
        }

        func matches(_ authority: Substring) -> Bool {
            guard let parts = try? Authority(parsing: authority), port == nil || parts.port == port,
                let name = try? HostName(canonicalizing: parts.host, for: .forwarded).text
            else { return false }
            return isWildcard ? name.hasSuffix("." + host) : name == host
        }
    }

    /// Lost requests match if there is no filter.
    func matches(_ entry: LogEntry) -> Bool {
        guard case .request(let request) = entry else { return site == nil && !isRefusedOnly }
        return (!isRefusedOnly || request.isRefused) && (site?.matches(request.authority) ?? true)
    }
}
