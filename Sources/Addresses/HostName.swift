// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The canonical form of a host. Comparison, DNS look-up, connection, SNI and certificate verification all use this
/// text, so that the proxy connects to exactly the host that the list allows.
///
/// Text that two programs could read differently is an error and never repaired: `%`, backslash, numbers that some
/// resolvers accept as IPv4 (`127.1`, `0x7f.1`, `2130706433`), full-width letters and dots, zone identifiers.
package struct HostName: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case name
        case ipv4
        case ipv6
    }

    /// The strictness for ASCII names.
    package enum Use: Hashable, Sendable {
        /// A site on the list: letters, digits, underscores and inner hyphens; an `xn--` label must be valid under IDNA
        /// 2008.
        case listed
        /// A host in a client's request: accepts outer hyphens and unchecked `xn--` labels too, because such hosts
        /// exist.
        case forwarded
    }

    /// Lower-case A-labels without a trailing dot, a dotted quad, or an IPv6 address without brackets (RFC 5952).
    package let text: String
    package let kind: Kind

    /// The longest ASCII form, in bytes, without the trailing dot (RFC 1035 §2.3.4).
    package static let maximumBytes = 253
    /// The longest label, in bytes.
    package static let maximumLabelBytes = 63
    /// The longest input, in UTF-8 bytes. It is longer than ``maximumBytes`` because decomposed text shrinks when it is
    /// converted to A-labels.
    static let maximumInputBytes = 1024

    /// Accepts a name, a dotted quad, or an IPv6 address with or without its brackets. An IPv4-mapped IPv6 address
    /// becomes the IPv4 address; one trailing dot of a name is removed.
    package init(canonicalizing input: some StringProtocol, for use: Use = .listed) throws(HostNameError) {
        if Self.isPlainName(input.utf8) {
            self.init(text: String(input), kind: .name)
            return
        }
        guard !input.isEmpty else { throw HostNameError(.empty, "the host is empty") }
        guard input.utf8.count <= Self.maximumInputBytes else {
            throw HostNameError(
                .tooLong, "the host \(PrintableText.quoteASCII(input)) is longer than \(Self.maximumBytes) bytes")
        }
        if input.utf8.contains(UInt8(ascii: "@")) {
            throw HostNameError(
                .userInfo,
                "a user name is not allowed in the host "
                    + PrintableText.quoteASCII(Authority.withoutPassword(input)))
        }
        if input.utf8.first == UInt8(ascii: "[") || input.utf8.contains(UInt8(ascii: ":")) {
            self = try Self.address6(input)
        } else {
            self = try Self.name(input, use)
        }
    }

    private init(text: String, kind: Kind) {
        self.text = text
        self.kind = kind
    }

    package var description: String { text }

    /// `localhost` or a name below it, which never leaves the machine (RFC 6761 §6.3).
    package var isLoopbackName: Bool { HostText.isLoopbackName(text) }

    /// In 127.0.0.0/8, or `::1`.
    package var isLoopbackAddress: Bool { HostText.isLoopbackAddress(text) }

    /// Either of them: the host is this machine, regardless of the name server.
    package var isLoopback: Bool { isLoopbackName || isLoopbackAddress }

    /// 4 or 16 bytes in network order; empty for a name.
    package var addressBytes: [UInt8] {
        switch kind {
        case .name: []
        case .ipv4: IPAddressText.parse4(Array(text.utf8)) ?? []
        case .ipv6: IPAddressText.parse6(Array(text.utf8)) ?? []
        }
    }

    /// The name without its first label; nil for a single label and for an address.
    package var parent: HostName? {
        guard kind == .name, let dot = text.utf8.firstIndex(of: UInt8(ascii: ".")) else { return nil }
        return HostName(text: String(text[text.utf8.index(after: dot)...]), kind: .name)
    }

    // MARK: Addresses

    private static func address6(_ input: some StringProtocol) throws(HostNameError) -> HostName {
        var bytes = Array(input.utf8)
        if bytes.first == UInt8(ascii: "[") {
            guard bytes.last == UInt8(ascii: "]") else {
                throw HostNameError(.address, "the bracket in \(PrintableText.quoteASCII(input)) is not closed")
            }
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.contains(UInt8(ascii: "%")) {
            throw HostNameError(.zone, "the address \(PrintableText.quoteASCII(input)) has a zone identifier")
        }
        guard let address = IPAddressText.parse6(bytes) else {
            throw HostNameError(.address, "\(PrintableText.quoteASCII(input)) is not an IPv6 address")
        }
        let mapped = address[..<10].allSatisfy { $0 == 0 } && address[10] == 0xFF && address[11] == 0xFF
        return mapped
            ? HostName(text: IPAddressText.format4(address[12...]), kind: .ipv4)
            : HostName(text: IPAddressText.format6(address), kind: .ipv6)
    }

    // MARK: Names

    /// Fast path: whether the bytes are a canonical name of the most common form, checked in one pass. For such a name,
    /// the full procedure returns the same text.
    static func isPlainName(_ bytes: some Collection<UInt8>) -> Bool {
        guard bytes.count <= maximumBytes else { return false }
        var length = 0
        var previous = UInt8(ascii: ".")
        var startsWithLetter = false
        for byte in bytes {
            if byte &- UInt8(ascii: "a") < 26 {
                if length == 0 { startsWithLetter = true }
                length += 1
            } else if byte == UInt8(ascii: ".") {
                guard length > 0, length <= maximumLabelBytes, previous != UInt8(ascii: "-") else { return false }
                length = 0
            } else if byte &- UInt8(ascii: "0") < 10 {
                if length == 0 { startsWithLetter = false }
                length += 1
            } else {
                guard byte == UInt8(ascii: "-"), length > 0, previous != byte else { return false }
                length += 1
            }
            previous = byte
        }
        return length > 0 && length <= maximumLabelBytes && previous != UInt8(ascii: "-") && startsWithLetter
    }

    private static func name(_ input: some StringProtocol, _ use: Use) throws(HostNameError) -> HostName {
        for byte in input.utf8 where byte < 0x80 && !isNameByte(byte) {
            let character = PrintableText.quoteASCII(String(decoding: CollectionOfOne(byte), as: UTF8.self))
            throw HostNameError(
                .forbiddenCharacter,
                "the character \(character) is not allowed in the host \(PrintableText.quoteASCII(input))")
        }
        var bytes = Array(input.utf8)
        let hasTrailingDot = bytes.last == UInt8(ascii: ".")
        if hasTrailingDot { bytes.removeLast() }

        var labels: [HostLabel] = []
        for part in bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard !part.isEmpty else {
                throw HostNameError(.emptyLabel, "the host \(PrintableText.quoteASCII(input)) has an empty label")
            }
            labels.append(try HostLabel(part, use))
        }
        if BidirectionalRule.applies(to: labels.map(\.unicode)) {
            for label in labels where !BidirectionalRule.isSatisfied(by: label.unicode) {
                throw HostNameError(
                    .international,
                    "the label \(PrintableText.quoteASCII(label.text)) mixes writing directions (RFC 5893)")
            }
        }
        let text = labels.map(\.text).joined(separator: ".")
        guard text.utf8.count <= maximumBytes else {
            throw HostNameError(
                .tooLong, "the host \(PrintableText.quoteASCII(input)) is longer than \(maximumBytes) bytes")
        }
        guard let last = labels.last, IPAddressText.looksNumeric(last.text) else {
            return HostName(text: text, kind: .name)
        }
        guard !hasTrailingDot, IPAddressText.parse4(Array(text.utf8)) != nil else {
            throw HostNameError(
                .address, "\(PrintableText.quoteASCII(input)) is neither a name nor a dotted quad without leading zeros"
            )
        }
        return HostName(text: text, kind: .ipv4)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
