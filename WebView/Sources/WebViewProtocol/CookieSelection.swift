// SPDX-License-Identifier: Apache-2.0

/// The cookies that the caller wants to keep: these names, from this host.
package struct CookieSelection: Codable, Equatable, Sendable {
    /// In lower case.
    package let host: String
    package let names: [String]

    package init(host: String, names: [String]) {
        self.host = host.lowercased()
        self.names = names
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        self.init(
            host: try members.decode(String.self, forKey: .host),
            names: try members.decode([String].self, forKey: .names))
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case host, names
    }

    /// The selected ones of `cookies`, in a stable order.
    package func select(_ cookies: [Cookie]) -> [Cookie] {
        cookies.filter { names.contains($0.name) && $0.isSent(to: host) }
            .sorted { ($0.name, $0.domain, $0.path) < ($1.name, $1.domain, $1.path) }
    }
}
