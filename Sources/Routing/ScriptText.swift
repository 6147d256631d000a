// SPDX-License-Identifier: Apache-2.0

/// The encodings of scripts. As in browsers, a byte order mark takes precedence over the `charset` of `Content-Type`.
/// Without both, browsers read ISO 8859-1; here, a script that is UTF-8 is read as that.
enum ScriptText {
    private enum Encoding {
        case utf8
        case utf16(isBigEndian: Bool)
        /// Each byte is a character.
        case latin1
    }

    /// The script in UTF-8, without a byte order mark. Invalid sequences of its encoding become U+FFFD.
    static func utf8(_ bytes: [UInt8], contentType: String?) -> [UInt8] {
        let (encoding, rest) = marked(bytes) ?? (named(contentType) ?? guessed(bytes), bytes[...])
        switch encoding {
        case .utf8: return Array(String(decoding: rest, as: UTF8.self).utf8)
        case .latin1: return rest.flatMap { Array(String(Unicode.Scalar($0)).utf8) }
        case .utf16(let isBigEndian):
            let units = stride(from: rest.startIndex, to: rest.endIndex - 1, by: 2).map { place in
                let (first, second) = (UInt16(rest[place]), UInt16(rest[place + 1]))
                return isBigEndian ? first << 8 | second : second << 8 | first
            }
            return Array(String(decoding: units, as: UTF16.self).utf8)
        }
    }

    private static func marked(_ bytes: [UInt8]) -> (Encoding, ArraySlice<UInt8>)? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, bytes[3...]) }
        if bytes.starts(with: [0xFE, 0xFF]) { return (.utf16(isBigEndian: true), bytes[2...]) }
        if bytes.starts(with: [0xFF, 0xFE]) { return (.utf16(isBigEndian: false), bytes[2...]) }
        return nil
    }

    /// Nil without a charset, or for an unknown one.
    private static func named(_ contentType: String?) -> Encoding? {
        for parameter in (contentType ?? "").lowercased().split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].filter({ $0 != " " && $0 != "\t" }) == "charset" else { continue }
            switch parts[1].filter({ !" \t\"'".contains($0) }) {
            case "utf-8", "utf8": return .utf8
            case "utf-16be": return .utf16(isBigEndian: true)
            case "utf-16", "utf-16le": return .utf16(isBigEndian: false)
            case "iso-8859-1", "iso8859-1", "latin1", "us-ascii", "windows-1252": return .latin1
            default: return nil
            }
        }
        return nil
    }

    private static func guessed(_ bytes: [UInt8]) -> Encoding {
        String(validating: bytes, as: UTF8.self) == nil ? .latin1 : .utf8
    }
}
