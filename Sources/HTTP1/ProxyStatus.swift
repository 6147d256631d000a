// SPDX-License-Identifier: Apache-2.0

/// The `Proxy-Status` field (RFC 9209).
package enum ProxyStatus {
    /// `countersign; error=…; details="…"`.
    package static func value(error: String?, details: String?) -> String {
        var value = name
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

    /// A parameter of such a value, which is a token or a string (RFC 8941 §3.3); nil without one.
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

// MARK: Members of others

extension ProxyStatus {
    /// The name of this proxy's member. Other instances have the same, so that it says nothing in a received response.
    private static let name = "countersign"

    /// The value of a received field with `upstream-countersign` in place of our name: an origin or a parent must not
    /// be able to speak for this proxy. Nil if the value does not have our name, and may be passed on; empty if two
    /// readers could find different members in it.
    ///
    /// A member is a token or a string (RFC 9209 §2). The name is compared without regard to case.
    static func renamed(_ value: String) -> String? {
        var result = ""
        var rest = value[...]
        var isOurs = false
        while !rest.isEmpty {
            guard let member = nextMember(&rest) else { return "" }
            if !result.isEmpty { result += ", " }
            let start = member.drop { $0 == " " || $0 == "\t" }
            let isString = start.first == "\""
            let text = isString ? start.dropFirst() : start
            guard text.lowercased().hasPrefix(name) else {
                result += start
                continue
            }
            let end = text.dropFirst(name.count)
            let isWhole = end.first.map { $0 == "\"" || $0 == ";" || $0 == " " || $0 == "\t" } ?? true
            isOurs = isOurs || isWhole
            result += isWhole ? "\(isString ? "\"" : "")upstream-\(text)" : start
        }
        return isOurs ? result : nil
    }

    /// The part up to the next comma outside of a string; nil if a string does not end, or is not all of a member or of
    /// a parameter's value, so that it may be read as something else.
    private static func nextMember(_ rest: inout Substring) -> Substring? {
        var (isString, isEscaped) = (false, false)
        var last: Character?
        var end = rest.startIndex
        while end < rest.endIndex, isString || rest[end] != "," {
            let character = rest[end]
            if character == "\"", !isEscaped {
                guard isString || last == nil || last == "=" else { return nil }
                isString.toggle()
            } else if last == "\"", !isString, !isBlank(character), character != ";" {
                return nil
            }
            isEscaped = isString && !isEscaped && character == "\\"
            if isString || last != nil || !isBlank(character) { last = character }
            rest.formIndex(after: &end)
        }
        let member = rest[..<end]
        rest = end < rest.endIndex ? rest[rest.index(after: end)...] : rest[end...]
        return isString ? nil : member
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
}
