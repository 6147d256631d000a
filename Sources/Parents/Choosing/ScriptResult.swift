// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The result of a proxy auto-configuration script: `PROXY a:8080; SOCKS5 b; DIRECT`. Never empty.
///
/// `PROXY` and `HTTP` mean an http proxy, `HTTPS` one over TLS. `SOCKS` and `SOCKS5` mean SOCKS 5 with names resolved
/// by the server, as browsers do. `SOCKS4` is an error. An element without a port has its kind's default port.
package struct ScriptResult: Hashable, Sendable {
    package let hops: [NextHop]

    /// The longest result, in UTF-8 bytes.
    package static let maximumBytes = 4096
    /// The most elements.
    package static let maximumHops = 32

    /// One element that cannot be understood makes the whole result an error, because leaving it out could change
    /// where requests go. Empty elements are skipped.
    package init(parsing text: String, from source: ScriptSource) throws(ParentsError) {
        func fault(_ reason: String) -> ParentsError {
            ParentsError(.malformedResult, "the result of the script \(source) \(reason)")
        }
        guard text.utf8.count <= Self.maximumBytes else {
            throw fault("is longer than \(Self.maximumBytes) bytes")
        }
        var hops: [NextHop] = []
        for part in text.split(separator: ";") {
            let words = part.split { $0 == " " || $0 == "\t" || $0.isNewline }
            guard !words.isEmpty else { continue }
            guard hops.count < Self.maximumHops else { throw fault("has more than \(Self.maximumHops) elements") }
            do throws(HostNameError) {
                hops.append(try Self.hop(words))
            } catch {
                throw fault("contains \(PrintableText.quote(part)): \(error.detail)")
            }
        }
        guard !hops.isEmpty else { throw fault("is empty") }
        self.hops = hops
    }

    private static func hop(_ words: [Substring]) throws(HostNameError) -> NextHop {
        let kind: ParentProxy.Kind
        switch words[0].uppercased() {
        case "DIRECT":
            guard words.count == 1 else { throw HostNameError(.path, "DIRECT has no host") }
            return .direct
        case "PROXY", "HTTP": kind = .http
        case "HTTPS": kind = .https
        case "SOCKS", "SOCKS5": kind = .socks5h
        case "SOCKS4": throw HostNameError(.scheme, "SOCKS 4 is not supported")
        default: throw HostNameError(.scheme, "expected PROXY, HTTPS, SOCKS, SOCKS5 or DIRECT")
        }
        guard words.count == 2 else { throw HostNameError(.empty, "expected one host") }
        let parts = try Authority(parsing: words[1])
        let host = try HostName(canonicalizing: parts.host, for: .forwarded)
        return .parent(ParentProxy(kind, host, parts.port ?? kind.defaultPort))
    }
}
