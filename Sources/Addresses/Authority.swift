// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The parts of `host[:port]` (RFC 3986 §3.2). The host is not canonicalised.
package struct Authority {
    /// An IPv6 address includes its brackets.
    package let host: Substring
    /// Nil if the text has no port.
    package let port: UInt16?

    package init(parsing text: Substring) throws(HostNameError) {
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw HostNameError(
                .userInfo, "a user name is not allowed in \(PrintableText.quoteASCII(Self.withoutPassword(text)))")
        }
        let bytes = text.utf8
        let afterHost: Substring.Index
        if bytes.first == UInt8(ascii: "[") {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else {
                throw HostNameError(.address, "the bracket in \(PrintableText.quoteASCII(text)) is not closed")
            }
            afterHost = bytes.index(after: bracket)
        } else {
            afterHost = bytes.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        }
        host = text[..<afterHost]
        guard !host.isEmpty else {
            throw HostNameError(.empty, "there is no host in \(PrintableText.quoteASCII(text))")
        }
        guard afterHost < text.endIndex else {
            port = nil
            return
        }
        guard bytes[afterHost] == UInt8(ascii: ":") else {
            throw HostNameError(.address, "only a port may follow the bracket in \(PrintableText.quoteASCII(text))")
        }
        let digits = text[bytes.index(after: afterHost)...]
        guard !digits.utf8.contains(UInt8(ascii: ":")) else {
            throw HostNameError(.address, "an IPv6 address must be in brackets: \(PrintableText.quoteASCII(text))")
        }
        port = try Self.port(digits)
    }

    /// `user:password@host` without the password, which no message may contain.
    static func withoutPassword(_ text: some StringProtocol) -> String {
        guard let at = text.lastIndex(of: "@"), let colon = text[..<at].firstIndex(of: ":") else { return String(text) }
        return "\(text[...colon])...\(text[at...])"
    }

    private static func port(_ digits: Substring) throws(HostNameError) -> UInt16 {
        guard (1...5).contains(digits.utf8.count), digits.utf8.first != UInt8(ascii: "0"),
            digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let port = UInt16(digits)
        else {
            throw HostNameError(.port, "\(PrintableText.quoteASCII(digits)) is not a port from 1 to 65535")
        }
        return port
    }
}
