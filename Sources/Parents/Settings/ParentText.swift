// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// Reads one proxy from a setting: `scheme://host:port`, with at most a `/` after it.
struct ParentText {
    /// The setting at fault in errors: `--parent` or a variable.
    let setting: String
    /// The kind of a text without a scheme; nil if it must have one.
    let defaultKind: ParentProxy.Kind?

    private static let kinds = "write http://, https://, socks5:// or socks5h://"

    func parse(_ text: some StringProtocol) throws(ParentsError) -> ParentProxy {
        // First, because every other error quotes the text.
        guard !text.utf8.contains(UInt8(ascii: "@")) else { throw userInfo() }
        let (kind, rest) = try split(Substring(text))
        let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
        guard !authority.utf8.contains(where: "/?#".utf8.contains) else {
            throw malformed(text, "a proxy has no path")
        }
        do throws(HostNameError) {
            let parts = try Authority(parsing: authority)
            let host = try HostName(canonicalizing: parts.host, for: .forwarded)
            return ParentProxy(kind, host, try port(parts.port, kind, authority))
        } catch {
            throw ParentsError(
                .malformedSetting, "\(setting): \(error.detail)",
                hint: error.hint ?? "write \(kind.rawValue)://HOST:PORT")
        }
    }

    /// Programs disagree about the port of an http proxy (curl: 1080, browsers: 80), so that one is required.
    private func port(
        _ port: UInt16?, _ kind: ParentProxy.Kind, _ authority: Substring
    ) throws(HostNameError) -> UInt16 {
        if let port { return port }
        guard kind != .http else {
            throw HostNameError(
                .port, "the proxy \(PrintableText.quote(authority)) has no port", hint: "write http://\(authority):PORT"
            )
        }
        return kind.defaultPort
    }

    private func split(_ text: Substring) throws(ParentsError) -> (ParentProxy.Kind, Substring) {
        guard let separator = text.firstRange(of: "://") else {
            if let defaultKind { return (defaultKind, text) }
            throw malformed(text, "not the address of a proxy", hint: Self.kinds)
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        guard let kind = ParentProxy.Kind(rawValue: scheme) else {
            let isSOCKS = ["socks", "socks4", "socks4a"].contains(scheme)
            throw ParentsError(
                .unsupportedKind, "\(setting): proxies of the kind \(PrintableText.quote(scheme)) are not supported",
                hint: isSOCKS ? "if the server speaks SOCKS 5, write socks5h://" : Self.kinds)
        }
        return (kind, text[separator.upperBound...])
    }

    private func userInfo() -> ParentsError {
        ParentsError(
            .userInfo, "\(setting): a user name or password is not allowed in the address of a proxy",
            hint:
                "list the proxy as proxy://HOST:PORT, and store the password with `countersign credential set --user USER`"
        )
    }

    private func malformed(_ text: some StringProtocol, _ reason: String, hint: String? = nil) -> ParentsError {
        ParentsError(.malformedSetting, "\(setting): \(reason): \(PrintableText.quote(text))", hint: hint)
    }
}
