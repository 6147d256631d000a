// SPDX-License-Identifier: Apache-2.0

/// One ASN.1 value in DER (X.690 §8.1) with a one-byte tag.
struct DERItem: Equatable, Sendable {
    let tag: UInt8
    let content: [UInt8]
    /// Tag, length and content.
    let encoding: [UInt8]

    static let boolean: UInt8 = 0x01
    static let integer: UInt8 = 0x02
    static let octetString: UInt8 = 0x04
    static let objectIdentifier: UInt8 = 0x06
    static let utf8String: UInt8 = 0x0C
    static let printableString: UInt8 = 0x13
    static let ia5String: UInt8 = 0x16
    static let sequence: UInt8 = 0x30
    static let set: UInt8 = 0x31

    /// All values in `bytes`. Throws `malformed` if bytes are left over or missing.
    static func items(in bytes: [UInt8]) throws(CertificateError) -> [DERItem] {
        var items: [DERItem] = []
        var rest = bytes[...]
        while !rest.isEmpty { items.append(try next(in: &rest)) }
        return items
    }

    /// The only value in `bytes`, of type `tag`.
    static func single(_ bytes: [UInt8], tag: UInt8) throws(CertificateError) -> DERItem {
        var rest = bytes[...]
        let item = try next(in: &rest)
        guard rest.isEmpty else { throw CertificateError(.malformed, "\(rest.count) extra bytes after a DER value") }
        return try item.expecting(tag)
    }

    func expecting(_ wanted: UInt8) throws(CertificateError) -> DERItem {
        guard tag == wanted else {
            throw CertificateError(.malformed, "a DER value with tag \(tag) instead of \(wanted)")
        }
        return self
    }

    /// The values in the content.
    func items() throws(CertificateError) -> [DERItem] { try Self.items(in: content) }

    /// The dotted text of an object identifier; nil for any other value.
    var dottedText: String? {
        guard tag == Self.objectIdentifier, let last = content.last, last & 0x80 == 0 else { return nil }
        var numbers: [UInt64] = []
        var number: UInt64 = 0
        for byte in content {
            guard number <= UInt64.max >> 7 else { return nil }
            number = number << 7 | UInt64(byte & 0x7F)
            if byte & 0x80 == 0 {
                numbers.append(number)
                number = 0
            }
        }
        let first = numbers.removeFirst()
        let root = min(first / 40, 2)
        return ([root, first - root * 40] + numbers).map(String.init).joined(separator: ".")
    }

    private static func next(in rest: inout ArraySlice<UInt8>) throws(CertificateError) -> DERItem {
        let start = rest.startIndex
        let whole = rest
        guard let tag = rest.popFirst(), tag & 0x1F != 0x1F, let first = rest.popFirst() else {
            throw CertificateError(.malformed, "a DER value without its tag or length")
        }
        var length = Int(first)
        if first >= 0x80 {
            let bytes = rest.prefix(Int(first & 0x7F))
            guard (1...4).contains(first & 0x7F), bytes.count == Int(first & 0x7F), bytes.first != 0 else {
                throw CertificateError(.malformed, "a DER value without a definite length")
            }
            length = bytes.reduce(0) { $0 << 8 | Int($1) }
            guard length >= 0x80 else {
                throw CertificateError(.malformed, "a DER length that is not in its shortest form")
            }
            rest = rest.dropFirst(bytes.count)
        }
        guard length <= rest.count else {
            throw CertificateError(.malformed, "a DER value of \(length) bytes with only \(rest.count) bytes left")
        }
        let content = Array(rest.prefix(length))
        rest = rest.dropFirst(length)
        return DERItem(tag: tag, content: content, encoding: Array(whole[start..<rest.startIndex]))
    }
}

extension DEREncoding {
    /// The object identifier for a dotted text; nil if the text is not one.
    static func objectIdentifier(_ dotted: some StringProtocol) -> [UInt8]? {
        let parts = dotted.split(separator: ".", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part in
            part.utf8.allSatisfy { (0x30...0x39).contains($0) } && !(part.count > 1 && part.first == "0")
                ? UInt32(part) : nil
        }
        guard numbers.count == parts.count, numbers.count >= 2, numbers[0] <= 2, numbers[0] == 2 || numbers[1] < 40
        else { return nil }
        let joined = [UInt64(numbers[0]) * 40 + UInt64(numbers[1])] + numbers.dropFirst(2).map(UInt64.init)
        return value(tag: DERItem.objectIdentifier, joined.flatMap(base128))
    }

    private static func base128(_ number: UInt64) -> [UInt8] {
        var bytes = [UInt8(number & 0x7F)]
        var rest = number >> 7
        while rest > 0 {
            bytes.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
            rest >>= 7
        }
        return bytes
    }
}
