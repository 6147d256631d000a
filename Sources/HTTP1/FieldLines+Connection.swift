// SPDX-License-Identifier: Apache-2.0

extension FieldLines {
    private static let connectionOptionCount = 64

    /// Limits the options in Connection, because forwarding compares every field name with every option.
    @inline(__always)
    func requireFewConnectionOptions(sentBy sender: MessageSender) throws(HTTP1Error) {
        guard connection.optionCount <= FieldLines.connectionOptionCount else {
            throw HTTP1Error(
                .malformedField, "more than \(FieldLines.connectionOptionCount) options in Connection", sentBy: sender)
        }
    }

    /// The protocols of Upgrade except h2c, if Connection names Upgrade; nil if none remains.
    var upgrade: String? {
        guard contains(.upgrade), connection.upgrades else { return nil }
        let span = bytes.span.bytes
        var protocols: [String] = []
        for element in elements(of: .upgrade) where !span.matches("h2c", at: element) {
            protocols.append(String(decoding: bytes[element], as: UTF8.self))
        }
        return protocols.isEmpty ? nil : protocols.joined(separator: ", ")
    }

    // MARK: Host

    /// Refuses a Host that is missing in HTTP/1.1, is repeated, or is not `uri-host [":" port]` (RFC 9112 §3.2).
    /// Stricter than RFC 3986's reg-name: percent-encoding and sub-delims, which no real host name has, are refused.
    func requireHost(version: HTTPVersion) throws(HTTP1Error) {
        guard contains(.host) else {
            guard version == .http10 else {
                throw HTTP1Error(.missingHost, "no Host in an HTTP/1.1 request", sentBy: .client)
            }
            return
        }
        guard count(of: .host) == 1 else {
            throw HTTP1Error(.duplicateHost, "more than one Host", sentBy: .client)
        }
        guard let line = lines.first(where: { $0.known == .host }), isAuthority(Range(line.value)) else {
            throw HTTP1Error(.invalidHost, "Host is not a host and a port", sentBy: .client)
        }
    }

    private func isAuthority(_ range: Range<Int>) -> Bool {
        let span = bytes.span.bytes
        guard !range.isEmpty else { return false }
        var end = range.lowerBound
        if span.byte(end) == 0x5B {
            end += 1
            while end < range.upperBound, Octet.isAddress(span.byte(end)) { end += 1 }
            guard end > range.lowerBound + 2, end < range.upperBound, span.byte(end) == 0x5D else { return false }
            end += 1
        } else {
            end = span.end(from: end, before: range.upperBound, of: Octet.isHostName)
            guard end > range.lowerBound else { return false }
        }
        guard end < range.upperBound else { return true }
        return span.byte(end) == Octet.colon && span.isPort(end + 1..<range.upperBound)
    }
}

extension Octet {
    /// ALPHA, DIGIT, `-`, `.`, `_`, `~` (RFC 3986 §2.3): a bitmap of the octets below 0x80.
    @inline(__always)
    fileprivate static func isHostName(_ octet: UInt8) -> Bool {
        let octets: UInt64 = octet < 0x40 ? 0x03FF_6000_0000_0000 : 0x47FF_FFFE_87FF_FFFE
        return octet < 0x80 && octets >> UInt64(octet & 0x3F) & 1 == 1
    }

    /// HEXDIG, `:`, `.`.
    fileprivate static func isAddress(_ octet: UInt8) -> Bool {
        let folded = lowercased(octet)
        return folded >= 0x61 && folded <= 0x66 || isDigit(octet) || octet == colon || octet == 0x2E
    }
}

extension RawSpan {
    fileprivate func isPort(_ digits: Range<Int>) -> Bool {
        guard (1...5).contains(digits.count) else { return false }
        var port = 0
        for position in digits {
            guard Octet.isDigit(byte(position)) else { return false }
            port = port &* 10 &+ Int(byte(position) &- 0x30)
        }
        return port <= 65535
    }
}
