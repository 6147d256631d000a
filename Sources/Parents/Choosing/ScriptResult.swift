// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The result of a proxy auto-configuration script: `PROXY a:8080; SOCKS5 b; DIRECT`. Never empty.
///
/// `PROXY` and `HTTP` mean an http proxy, `HTTPS` one over TLS, in upper or lower case. `SOCKS` and `SOCKS5` mean SOCKS
/// 5 with names resolved by the server. In browsers, `SOCKS` means SOCKS 4, which is not supported; nearly all its
/// servers speak SOCKS 5, too. An element without a port has its kind's default port. An empty result is `DIRECT`.
package struct ScriptResult: Hashable, Sendable {
    package let hops: [NextHop]
    /// Why elements were skipped, each a sentence that names the script.
    package let skipped: [String]

    /// The longest result, in UTF-8 bytes.
    package static let maximumBytes = 4096
    /// The most elements. Those beyond are skipped.
    package static let maximumHops = 32

    /// As in browsers, an element that cannot be understood is skipped, and empty elements count for nothing. If every
    /// element was skipped, that is an error: the script does not want a direct connection.
    package init(parsing text: String, from source: ScriptSource) throws(ParentsError) {
        func sentence(_ reason: String) -> String { "the result of the script \(source) \(reason)" }
        guard text.utf8.count <= Self.maximumBytes else {
            throw ParentsError(.malformedResult, sentence("is longer than \(Self.maximumBytes) bytes"))
        }
        var hops: [NextHop] = []
        var skipped: [String] = []
        for part in text.split(separator: ";") {
            let words = part.split { $0 == " " || $0 == "\t" || $0.isNewline }
            guard !words.isEmpty else { continue }
            guard hops.count < Self.maximumHops else {
                skipped.append(sentence("has more than \(Self.maximumHops) elements"))
                break
            }
            do throws(HostNameError) {
                hops.append(try Self.hop(words))
            } catch {
                skipped.append(sentence("contains \(PrintableText.quote(part)): \(error.detail)"))
            }
        }
        if hops.isEmpty, let reason = skipped.first { throw ParentsError(.malformedResult, reason) }
        self.hops = hops.isEmpty ? [.direct] : hops
        self.skipped = skipped
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
