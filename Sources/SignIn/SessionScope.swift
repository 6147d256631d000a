// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignJSON
import CountersignOAuth
import CountersignSitePolicy

/// Which cookies of a profile's provider are shared among the clients of a group: `"session"` in the profile.
package struct SessionScope: Equatable, Sendable {
    package let group: String
    /// The only host that gets the cookies, canonical.
    package let host: HostName
    package let port: UInt16
    /// The names of the cookies, none twice.
    package let cookies: [String]

    /// `reader` is the one of the profile. Nil if the profile shares no session.
    init?(_ profile: inout JSONReader, issuer: Issuer, sites: [String]) throws {
        guard var reader = try profile.objectIfPresent("session") else { return nil }
        group = try reader.string("group")
        guard SiteRule.isGroupName(group) else {
            throw reader.invalid(
                "group", "must have 1 to 64 characters from A-Z a-z 0-9 . _ -, the first a letter or digit")
        }
        cookies = try reader.strings("cookies")
        if let fault = SiteRule.fault(ofCookies: cookies) { throw reader.invalid("cookies", fault) }
        let text = try reader.string("host")
        do {
            host = try HostName(canonicalizing: text)
        } catch {
            throw reader.invalid("host", "is not a host: \(error.detail)")
        }
        port = try Self.port(of: host, reader, issuer, sites)
        try reader.finish()
    }

    /// The port at which the host is known. Throws if it is not a host of the profile.
    private static func port(
        of host: HostName, _ reader: JSONReader, _ issuer: Issuer, _ sites: [String]
    ) throws -> UInt16 {
        let own = issuer.url.origin
        let patterns = sites.compactMap { try? SitePattern(parsing: $0, publicSuffixes: .none) }
        if host.text == own.host {
            guard own.scheme == .https else { throw reader.invalid("host", "must be one of an https issuer") }
            return own.port
        }
        guard !PublicSuffixes.builtIn.isPublicSuffix(host) else {
            throw reader.invalid("host", "is a name under which anybody can register names")
        }
        if let exact = patterns.first(where: { $0.host == .exact(host) && $0.scheme == .https }) { return exact.port }
        let names = patterns.map(\.host.name.text) + [own.host]
        guard host.kind == .name, names.contains(where: { host.text.hasSuffix(".\($0)") }) else {
            throw reader.invalid("host", "must be the issuer's host, a host of \"sites\", or below one of them")
        }
        return 443
    }

    /// The site, as `AllowedSites` writes it.
    package var site: SitePattern { SitePattern(scheme: .https, host: .exact(host), port: port) }

    /// The options of the site's line.
    package var options: String { "session=\(group) cookies=\(cookies.joined(separator: ","))" }
}
