// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// `[scheme://]host[:port]` of the allowed-sites list in canonical form: two patterns are equal if they match the same
/// origins.
package struct SitePattern: Hashable, Sendable, CustomStringConvertible {
    package enum Host: Hashable, Sendable {
        case exact(HostName)
        /// `*.host`: all names below the host, at any depth, but not the host itself.
        case subdomains(of: HostName)

        /// The canonical host, without `*.`.
        package var name: HostName {
            switch self {
            case .exact(let name), .subdomains(of: let name): name
            }
        }
    }

    package let scheme: Origin.Scheme
    package let host: Host
    package let port: UInt16

    package init(scheme: Origin.Scheme, host: Host, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// The default scheme is `https`, the default port the scheme's; `proxy` has none. A wildcard before an address or
    /// a public suffix is an error.
    package init(
        parsing text: some StringProtocol, publicSuffixes: PublicSuffixes = .builtIn
    ) throws(HostNameError) {
        var rest = Substring(text)
        if let separator = AbsoluteURL.schemeEnd(rest) {
            let name = rest[..<separator]
            scheme = name.lowercased() == Origin.Scheme.proxy.rawValue ? .proxy : try Origin.Scheme(name: name)
            rest = rest[rest.utf8.index(separator, offsetBy: 3)...]
        } else {
            scheme = .https
        }
        if Self.isAddressRange(rest) {
            throw HostNameError(
                .path, "address ranges cannot be listed: \(PrintableText.quoteASCII(text))",
                hint: "list each address, or the names of the sites")
        }
        if rest.utf8.contains(where: { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }) {
            throw HostNameError(.path, "a site must not have a path or query: \(PrintableText.quoteASCII(text))")
        }
        if rest == "*" || rest == "*." || rest.utf8.starts(with: "*:".utf8) {
            throw HostNameError(.wildcard, "\(PrintableText.quoteASCII(text)) would list every site")
        }
        let isWildcard = rest.utf8.starts(with: "*.".utf8)
        if isWildcard { rest = rest.dropFirst(2) }
        if rest.utf8.contains(UInt8(ascii: "*")) {
            throw HostNameError(
                .wildcard, "the wildcard in \(PrintableText.quoteASCII(text)) is not a whole first label")
        }
        let authority = try Authority(parsing: rest)
        let name = try HostName(canonicalizing: authority.host)
        guard scheme != .proxy || authority.port != nil else {
            throw HostNameError(.port, "the port of the parent proxy is missing: \(PrintableText.quoteASCII(text))")
        }
        port = authority.port ?? scheme.defaultPort
        host = isWildcard ? .subdomains(of: name) : .exact(name)
        guard isWildcard else { return }
        guard name.kind == .name else {
            throw HostNameError(.wildcard, "an address has no subdomains: \(PrintableText.quoteASCII(text))")
        }
        guard !publicSuffixes.isPublicSuffix(name) else {
            throw HostNameError(
                .wildcard, "\(PrintableText.quoteASCII(text)) would match every site below a public suffix")
        }
    }

    /// `10.0.0.0/8` or `[fd00::]/8`.
    private static func isAddressRange(_ text: Substring) -> Bool {
        guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")),
            let host = try? HostName(canonicalizing: text[..<slash]), host.kind != .name
        else { return false }
        let bits = text.utf8[slash...].dropFirst()
        return (1...3).contains(bits.count) && bits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// In full, as in the list: `https://*.example.com`, with the port unless it is the scheme's default.
    package var description: String {
        let origin = Origin(scheme: scheme, host: host.name, port: port)
        return switch host {
        case .exact: "\(scheme.rawValue)://\(origin.authority)"
        case .subdomains: "\(scheme.rawValue)://*.\(origin.authority)"
        }
    }
}
