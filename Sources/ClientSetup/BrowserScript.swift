// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
package import CountersignParents
package import CountersignSitePolicy

/// A proxy auto-configuration script for browsers: the listed sites, and what a parent proxy is needed for, go to this
/// proxy, and everything else is reached directly.
///
/// It is ECMAScript 3, looks up no name, and compares hosts in the canonical form in which browsers pass them. Browsers
/// ask it for `ws` and `wss` as for `http` and `https`. There is no second choice after the proxy: a browser must not
/// go around it, and reach a site without what its lines demand, while the proxy restarts.
///
/// Exceptions of `--no-proxy` that are networks of IPv6 go to the proxy, which reaches them directly.
package struct BrowserScript {
    /// The address of the proxy: `127.0.0.1:3128`.
    private let address: String
    private let patterns: [SitePattern]
    /// Nil without a parent.
    private let parents: ParentSettings?

    /// `rules`: the list. `parents`: nil without any.
    package init(address: String, rules: [SiteRule], parents: ParentSettings?) {
        self.init(address: address, patterns: rules.map(\.pattern), parents: parents)
    }

    init(address: String, patterns: [SitePattern], parents: ParentSettings?) {
        self.address = address
        // A parent proxy is listed for its challenges, and no URL leads to it.
        self.patterns = patterns.filter { $0.scheme != .proxy }
        self.parents = parents.flatMap { $0.hasParents ? $0 : nil }
    }

    /// RFC 9110 has none; that of Netscape's proxy auto-configuration, which all browsers accept.
    package static let mediaType = "application/x-ns-proxy-autoconfig"

    package var text: String {
        """
        // Written by Countersign. It changes with the list of sites.
        var proxy = \(Self.quoted("PROXY \(address)"));
        var sites = \(Self.table(patterns.filter { !$0.isWildcard }));
        var below = \(Self.table(patterns.filter(\.isWildcard)));
        \(elsewhere)
        \(Self.decision)
        """
    }

    /// The function for what is not listed.
    private var elsewhere: String {
        guard let parents else { return "function elsewhere(name, port) {\n    return \"DIRECT\";\n}" }
        var conditions = parents.noProxy.exceptions.compactMap(Self.condition)
        // Only a script may know a proxy for requests to this machine.
        let hasScripts = parents.sources.contains { if case .script = $0 { true } else { false } }
        if !parents.noProxy.sendsLoopback, !hasScripts {
            conditions += [#"isBelow(name, "localhost")"#, "isIn(name, 2130706432, 16777216)", #"name == "[::1]""#]
        }
        let tests = conditions.map { "    if (\($0)) return \"DIRECT\";\n" }.joined()
        return Self.functions + "function elsewhere(name, port) {\n\(tests)    return proxy;\n}"
    }

    /// Nil for a network of IPv6 with more than one address.
    private static func condition(_ exception: (hosts: NoProxyList.Hosts, port: UInt16?)) -> String? {
        let port = exception.port.map { " && port == \"\($0)\"" } ?? ""
        switch exception.hosts {
        case .all: return "true\(port)"
        case .domain(let domain): return "isBelow(name, \(quoted(domain)))\(port)"
        case .network(let address, let bits) where address.count == 4:
            let number = address.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let size = UInt64(1) << UInt64(32 - bits)
            return "isIn(name, \(number / size * size), \(size))\(port)"
        case .network: return nil
        }
    }

    /// An object whose members are `https://HOST:PORT`. No key can be the name of a member that all objects have.
    private static func table(_ patterns: [SitePattern]) -> String {
        var keys: [String] = []
        for key in patterns.map(\.key) where !keys.contains(key) { keys.append(key) }
        return keys.isEmpty ? "{}" : "{\n" + keys.map { "    \(quoted($0)): 1" }.joined(separator: ",\n") + "\n}"
    }

    /// A string of ECMAScript 3. Hosts are ASCII already; nothing that could end the string gets into it.
    private static func quoted(_ text: String) -> String {
        let characters = text.utf16.map { unit -> String in
            switch unit {
            case 0x22, 0x26, 0x27, 0x3C, 0x3E, 0x5C, ..<0x20, 0x7F...:
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: return String(UnicodeScalar(UInt8(unit)))
            }
        }
        return "\"\(characters.joined())\""
    }

    private static let functions = """
        function isBelow(name, domain) {
            var start = name.length - domain.length;
            return start == 0 && name == domain
                || start > 0 && name.charAt(start - 1) == "." && name.substring(start) == domain;
        }
        function isIn(name, first, size) {
            var parts = /^([0-9]+)[.]([0-9]+)[.]([0-9]+)[.]([0-9]+)$/.exec(name);
            if (!parts) return false;
            var number = ((+parts[1] * 256 + +parts[2]) * 256 + +parts[3]) * 256 + +parts[4];
            return number >= first && number < first + size;
        }

        """

    /// A user name, a final dot and the default port of the scheme make no difference.
    private static let decision = #"""
        function FindProxyForURL(url, host) {
            var parts = /^([a-z]+):\/\/(?:[^\/?#@]*@)?(\[[^\]]*\]|[^\/?#:]*)(?::([0-9]+))?/i.exec(url);
            if (!parts) return "DIRECT";
            var scheme = parts[1].toLowerCase();
            if (scheme == "ws") scheme = "http";
            if (scheme == "wss") scheme = "https";
            if (scheme != "http" && scheme != "https") return "DIRECT";
            var name = parts[2].toLowerCase().replace(/[.]$/, "");
            var port = parts[3] || (scheme == "https" ? "443" : "80");
            if (sites[scheme + "://" + name + ":" + port] === 1) return proxy;
            for (var dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
                if (below[scheme + "://" + name.substring(dot + 1) + ":" + port] === 1) return proxy;
            }
            return elsewhere(name, port);
        }

        """#
}

extension SitePattern {
    fileprivate var isWildcard: Bool { if case .subdomains = host { true } else { false } }

    /// `https://HOST:PORT`; the port is always present, and a wildcard has no `*.`.
    fileprivate var key: String { Origin(scheme: scheme, host: host.name, port: port).description }
}
