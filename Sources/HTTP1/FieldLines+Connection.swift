// SPDX-License-Identifier: Apache-2.0

extension FieldLines {
    private static let connectionOptionCount = 64

    /// Refuses a Connection field whose options would make each forwarded head a long comparison.
    func requireFewConnectionOptions(sentBy sender: MessageSender) throws(HTTP1Error) {
        guard connection.optionCount <= FieldLines.connectionOptionCount else {
            throw HTTP1Error(
                .malformedField, "more than \(FieldLines.connectionOptionCount) options in Connection", sentBy: sender)
        }
    }

    /// The protocols of Upgrade but h2c, when Connection names it; nil when none is left.
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

    /// Refuses a Host that is missing in HTTP/1.1, stands twice, or is no `uri-host [":" port]` (RFC 9112 §3.2). Of the
    /// characters of RFC 3986 reg-name only those of real host names pass: no percent-encoding, no sub-delims.
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
        guard let first = bytes[range].first else { return false }
        var end = range.lowerBound
        if first == 0x5B {
            guard let close = bytes[range].firstIndex(of: 0x5D), close > end + 2 else { return false }
            guard bytes[(end + 1)..<close].allSatisfy(isAddressOctet) else { return false }
            end = close + 1
        } else {
            while end < range.upperBound, isNameOctet(bytes[end]) { end += 1 }
            guard end > range.lowerBound else { return false }
        }
        guard end < range.upperBound else { return true }
        return bytes[end] == Octet.colon && isPort(bytes[(end + 1)..<range.upperBound])
    }

    /// ALPHA, DIGIT, `-`, `.`, `_`, `~` (RFC 3986 §2.3): a bit for each octet below 0x80.
    private func isNameOctet(_ octet: UInt8) -> Bool {
        let octets: UInt64 = octet < 0x40 ? 0x03FF_6000_0000_0000 : 0x47FF_FFFE_87FF_FFFE
        return octet < 0x80 && octets >> (octet & 0x3F) & 1 == 1
    }

    /// HEXDIG, `:`, `.`.
    private func isAddressOctet(_ octet: UInt8) -> Bool {
        let folded = Octet.lowercased(octet)
        return folded >= 0x61 && folded <= 0x66 || Octet.isDigit(octet) || octet == Octet.colon || octet == 0x2E
    }

    private func isPort(_ digits: ArraySlice<UInt8>) -> Bool {
        guard !digits.isEmpty, digits.count <= 5, digits.allSatisfy(Octet.isDigit) else { return false }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65535
    }
}
