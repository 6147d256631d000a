// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A JSON object (RFC 8259 §4) under construction. Member names are literals and are not escaped.
package struct JSONObject: Sendable {
    private var bytes = Array("{".utf8)

    package init() {}

    package mutating func add(_ name: String, _ value: String) {
        key(name)
        bytes += Array("\"\(Self.escaped(value))\"".utf8)
    }

    /// Adds nothing without a value.
    package mutating func add(_ name: String, ifAny value: String?) {
        if let value { add(name, value) }
    }

    package mutating func add(_ name: String, _ values: [String]) {
        key(name)
        bytes += Array("[\(values.map { "\"\(Self.escaped($0))\"" }.joined(separator: ","))]".utf8)
    }

    package mutating func add(_ name: String, _ value: UInt64) {
        key(name)
        bytes += Array(String(value).utf8)
    }

    package mutating func add(_ name: String, _ value: JSONObject) {
        key(name)
        bytes += value.utf8
    }

    package mutating func add(_ name: String, _ values: [JSONObject]) {
        key(name)
        bytes += Array("[".utf8) + values.map(\.utf8).joined(separator: Array(",".utf8)) + Array("]".utf8)
    }

    /// The whole object.
    package var utf8: [UInt8] { bytes + Array("}".utf8) }

    package var text: String { String(decoding: utf8, as: UTF8.self) }

    private mutating func key(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes += Array("\"\(name)\":".utf8)
    }

    /// `text` as the content of a JSON string (RFC 8259 §7).
    package static func escaped(_ text: String) -> String {
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
