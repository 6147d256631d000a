// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A JSON object (RFC 8259 §4) under construction. Member names are literals and are not escaped.
struct JSONObject {
    private var bytes = Array("{".utf8)

    mutating func add(_ name: String, _ value: String) {
        key(name)
        bytes += Array("\"\(Self.escaped(value))\"".utf8)
    }

    mutating func add(_ name: String, _ value: UInt64) {
        key(name)
        bytes += Array(String(value).utf8)
    }

    mutating func add(_ name: String, _ value: JSONObject) {
        key(name)
        bytes += value.utf8
    }

    mutating func add(_ name: String, _ values: [JSONObject]) {
        key(name)
        bytes += Array("[".utf8) + values.map(\.utf8).joined(separator: Array(",".utf8)) + Array("]".utf8)
    }

    /// The whole object.
    var utf8: [UInt8] { bytes + Array("}".utf8) }

    var text: String { String(decoding: utf8, as: UTF8.self) }

    private mutating func key(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes += Array("\"\(name)\":".utf8)
    }

    /// `text` as the content of a JSON string (RFC 8259 §7).
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                result.append("\\")
                result.append(scalar)
            case "\n":
                result.append(contentsOf: "\\n".unicodeScalars)
            case " "..."~":
                result.append(scalar)
            default:
                // A person may read the log on a terminal.
                result.append(contentsOf: PrintableText.escapedJSON(scalar).unicodeScalars)
            }
        }
        return String(result)
    }
}
