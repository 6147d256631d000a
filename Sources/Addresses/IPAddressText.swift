// SPDX-License-Identifier: Apache-2.0

/// Parses addresses in their strict text forms and formats them in the canonical one.
enum IPAddressText {
    /// Whether a resolver might read a name that ends in this label as an IPv4 address: decimal digits, or `0x` and
    /// hexadecimal digits.
    static func looksNumeric(_ label: some StringProtocol) -> Bool {
        if label.utf8.allSatisfy(isDigit) { return !label.isEmpty }
        guard label.hasPrefix("0x") else { return false }
        return label.utf8.dropFirst(2).allSatisfy { hexValue($0) != nil }
    }

    /// Four decimal numbers of 0 to 255 without leading zeros (RFC 3986 §3.2.2, `IPv4address`).
    static func parse4(_ bytes: some Collection<UInt8>) -> [UInt8]? {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: [UInt8] = []
        for part in parts {
            guard (1...3).contains(part.count), part.allSatisfy(isDigit), part.count == 1 || part.first != 0x30 else {
                return nil
            }
            let value = part.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            guard let byte = UInt8(exactly: value) else { return nil }
            address.append(byte)
        }
        return address
    }

    /// RFC 4291 §2.2 without a zone: 16 bytes in network order.
    static func parse6(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count <= 45 else { return nil }
        var groups = bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map(Array.init)
        guard groups.count >= 3 else { return nil }
        // A leading or trailing "::" splits into two empty groups; one is enough.
        if groups[0].isEmpty {
            guard groups[1].isEmpty else { return nil }
            groups.removeFirst()
        }
        if groups[groups.count - 1].isEmpty {
            guard groups[groups.count - 2].isEmpty else { return nil }
            groups.removeLast()
        }
        var head: [UInt8] = []
        var tail: [UInt8]?
        for (index, group) in groups.enumerated() {
            let parsed: [UInt8]
            if group.isEmpty {
                guard tail == nil else { return nil }
                tail = []
                continue
            } else if index == groups.count - 1, group.contains(UInt8(ascii: ".")) {
                guard let quad = parse4(group) else { return nil }
                parsed = quad
            } else {
                guard group.count <= 4 else { return nil }
                var value: UInt16 = 0
                for byte in group {
                    guard let digit = hexValue(byte) else { return nil }
                    value = value << 4 | UInt16(digit)
                }
                parsed = [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)]
            }
            if tail == nil { head += parsed } else { tail?.append(contentsOf: parsed) }
        }
        guard let tail else { return head.count == 16 ? head : nil }
        // "::" represents at least one group.
        let missing = 16 - head.count - tail.count
        guard missing >= 2 else { return nil }
        return head + [UInt8](repeating: 0, count: missing) + tail
    }

    static func format4(_ address: some Collection<UInt8>) -> String {
        address.map { String($0) }.joined(separator: ".")
    }

    /// RFC 5952 §4: lower case, no leading zeros, the first longest run of two or more zero groups as `::`.
    static func format6(_ address: [UInt8]) -> String {
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(address[$0]) << 8 | UInt16(address[$0 + 1]) }
        var longest = 0..<0
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = end + 1
        }
        func hex(_ slice: ArraySlice<UInt16>) -> String { slice.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !longest.isEmpty else { return hex(groups[...]) }
        return hex(groups[..<longest.lowerBound]) + "::" + hex(groups[longest.upperBound...])
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
