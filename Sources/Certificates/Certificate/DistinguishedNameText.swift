// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Parses the text of a distinguished name: RFC 4514, or the slash-separated form of OpenSSL's commands.
struct DistinguishedNameText {
    private let text: [Unicode.Scalar]
    /// In OpenSSL's form, only `/`, `+` and the backslash are special, and spaces are significant.
    private let isSlashed: Bool
    private var position = 0

    private static let maximumCharacters = 4096

    init(_ text: String) {
        self.text = Array(text.unicodeScalars)
        isSlashed = self.text.first == "/"
    }

    /// The parts in the order of the DER; each is a list of attributes in DER.
    mutating func parts() throws(CertificateError) -> [[[UInt8]]] {
        guard text.count <= Self.maximumCharacters else {
            throw CertificateError(
                .malformed, "a name of \(text.count) characters, the limit is \(Self.maximumCharacters)")
        }
        let separators: Set<Unicode.Scalar> = isSlashed ? ["/"] : [",", ";"]
        if isSlashed { position = 1 }
        var parts: [[[UInt8]]] = [[]]
        while true {
            parts[parts.count - 1].append(try attribute(until: separators.union(["+"])))
            guard position < text.count else { break }
            if text[position] != "+" { parts.append([]) }
            position += 1
        }
        return isSlashed ? parts : parts.reversed()
    }

    private mutating func attribute(until ends: Set<Unicode.Scalar>) throws(CertificateError) -> [UInt8] {
        let start = position
        guard let equals = text[position...].firstIndex(where: { $0 == "=" || ends.contains($0) }), text[equals] == "="
        else { throw fault("expected an attribute and \"=\"", at: start) }
        let type = Self.trimmed(text[start..<equals])
        guard let kind = AttributeKind(type) else {
            throw fault("unknown attribute \(type.debugDescription)", at: start)
        }
        position = equals + 1
        let valueStart = position
        if !isSlashed, position < text.count, text[position] == "#" {
            let end = text[position...].firstIndex(where: ends.contains) ?? text.count
            defer { position = end }
            let digits = Self.trimmed(text[(position + 1)..<end])
            guard let bytes = Hex.decode(digits), let item = try? DERItem.items(in: bytes), item.count == 1 else {
                throw fault("expected a DER value in hexadecimal digits after \"#\"", at: valueStart)
            }
            return DEREncoding.sequence([kind.identifier, bytes])
        }
        let value = try value(until: ends)
        do throws(CertificateError) {
            return DEREncoding.sequence([kind.identifier, try kind.encoding(of: value)])
        } catch {
            throw fault(error.detail, at: valueStart)
        }
    }

    /// Stops at the separator or the end.
    private mutating func value(until ends: Set<Unicode.Scalar>) throws(CertificateError) -> String {
        var bytes: [UInt8] = []
        // Trailing spaces are significant only if they are escaped.
        var kept = 0
        while !isSlashed, position < text.count, text[position] == " " { position += 1 }
        while position < text.count, !ends.contains(text[position]) {
            let scalar = text[position]
            if scalar == "\\" {
                try bytes.append(contentsOf: escaped())
                kept = bytes.count
            } else if scalar == "\"", !isSlashed {
                throw fault("a quotation mark must be written as \\\"", at: position)
            } else {
                bytes.append(contentsOf: Array(String(scalar).utf8))
                if scalar != " " || isSlashed { kept = bytes.count }
                position += 1
            }
        }
        guard let value = String(validating: bytes.prefix(kept), as: UTF8.self) else {
            throw fault("the value is not UTF-8", at: position)
        }
        return value
    }

    /// The text after a backslash: two hexadecimal digits, or a character that represents itself.
    private mutating func escaped() throws(CertificateError) -> [UInt8] {
        let start = position
        guard position + 1 < text.count else { throw fault("nothing follows the backslash", at: start) }
        let next = text[position + 1]
        if isSlashed {
            position += 2
            return Array(String(next).utf8)
        }
        if position + 2 < text.count, let byte = Hex.decode(String(next) + String(text[position + 2])), byte.count == 1
        {
            position += 3
            return byte
        }
        guard " \"#+,;<=>\\/".unicodeScalars.contains(next) else {
            throw fault("\\\(next) is not a valid escape", at: start)
        }
        position += 2
        return Array(String(next).utf8)
    }

    private func fault(_ what: String, at index: Int) -> CertificateError {
        CertificateError(.malformed, "character \(index + 1) of the name: \(what)")
    }

    private static func trimmed(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        let inner = scalars.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        return String(String.UnicodeScalarView(inner))
    }
}

/// An attribute type, with the string type and maximum length of its value (RFC 5280 appendix A.1).
private struct AttributeKind {
    /// The object identifier's DER.
    let identifier: [UInt8]
    private let name: String
    private let tag: UInt8
    private let limit: Int

    /// From a keyword, in either case, or a dotted object identifier.
    init?(_ text: String) {
        name = text
        if let (dotted, tag, limit) = Self.table[text.lowercased()],
            let identifier = DEREncoding.objectIdentifier(dotted)
        {
            (self.identifier, self.tag, self.limit) = (identifier, tag, limit)
        } else if let identifier = DEREncoding.objectIdentifier(text) {
            let known = Self.table.values.first { DEREncoding.objectIdentifier($0.0) == identifier }
            (self.identifier, self.tag, self.limit) = (identifier, known?.1 ?? DERItem.utf8String, known?.2 ?? 1024)
        } else {
            return nil
        }
    }

    func encoding(of value: String) throws(CertificateError) -> [UInt8] {
        let count = value.unicodeScalars.count
        guard count > 0 else { throw CertificateError(.malformed, "\(name) is empty") }
        guard count <= limit else {
            throw CertificateError(.malformed, "\(name) has \(count) characters, the limit is \(limit)")
        }
        let isTaken =
            switch tag {
            case DERItem.printableString: PrintableString.holds(value) && (limit != 2 || count == 2)
            case DERItem.ia5String: value.utf8.allSatisfy { $0 < 0x80 }
            default: true
            }
        guard isTaken, !value.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw CertificateError(.malformed, "\(value.debugDescription) is not a valid value of \(name)")
        }
        return DEREncoding.string(tag: tag, value)
    }

    private static let table: [String: (String, UInt8, Int)] = [
        "cn": ("2.5.4.3", DERItem.utf8String, 64), "sn": ("2.5.4.4", DERItem.utf8String, 32768),
        "serialnumber": ("2.5.4.5", DERItem.printableString, 64), "c": ("2.5.4.6", DERItem.printableString, 2),
        "l": ("2.5.4.7", DERItem.utf8String, 128), "st": ("2.5.4.8", DERItem.utf8String, 128),
        "street": ("2.5.4.9", DERItem.utf8String, 128), "o": ("2.5.4.10", DERItem.utf8String, 64),
        "ou": ("2.5.4.11", DERItem.utf8String, 64), "title": ("2.5.4.12", DERItem.utf8String, 64),
        "gn": ("2.5.4.42", DERItem.utf8String, 32768), "initials": ("2.5.4.43", DERItem.utf8String, 32768),
        "dnqualifier": ("2.5.4.46", DERItem.printableString, 64),
        "uid": ("0.9.2342.19200300.100.1.1", DERItem.utf8String, 256),
        "dc": ("0.9.2342.19200300.100.1.25", DERItem.ia5String, 63),
        "emailaddress": ("1.2.840.113549.1.9.1", DERItem.ia5String, 255),
        "e": ("1.2.840.113549.1.9.1", DERItem.ia5String, 255),
    ]
}

/// The characters of PrintableString (X.680 §41.4).
enum PrintableString {
    static func holds(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: " '()+,-./:=?".utf8.contains(byte)
            }
        }
    }
}
