// SPDX-License-Identifier: Apache-2.0

/// The `Proxy-Status` field (RFC 9209).
package enum ProxyStatus {
    /// `countersign; error=…; details="…"`.
    package static func value(error: String?, details: String?) -> String {
        var value = "countersign"
        if let error { value += "; error=\(error)" }
        if let details { value += "; details=\(quoted(details))" }
        return value
    }

    /// An sf-string (RFC 8941 §3.3.3): visible ASCII and spaces; everything else becomes `?`.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                result += "\\"
                result.unicodeScalars.append(scalar)
            case " "..."~":
                result.unicodeScalars.append(scalar)
            default:
                result += "?"
            }
        }
        return result + "\""
    }

    /// A parameter of such a value, which is a token or a string (RFC 8941 §3.3); nil if there is none.
    package static func parameter(_ name: String, of item: some StringProtocol) -> String? {
        guard let start = item.firstRange(of: "; \(name)=")?.upperBound else { return nil }
        let rest = item[start...]
        guard rest.first == "\"" else { return String(rest.prefix { $0 != ";" }) }
        var text = ""
        var isEscaped = false
        for character in rest.dropFirst() {
            if !isEscaped, character == "\"" { break }
            isEscaped = !isEscaped && character == "\\"
            if !isEscaped { text.append(character) }
        }
        return text
    }
}
