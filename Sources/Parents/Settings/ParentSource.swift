// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// One element of `--parent`.
package enum ParentSource: Hashable, Sendable {
    case hop(NextHop)
    case script(ScriptSource)
    /// The desktop's or the environment's settings.
    case system

    private static let setting = "--parent"
    private static let words: [(text: String, source: ParentSource)] = [
        ("direct", .hop(.direct)), ("wpad", .script(.wpad)), ("system", .system),
    ]
    private static let hint = """
        write direct, http://HOST:PORT, https://HOST, socks5://HOST, socks5h://HOST, pac:URL, pac:FILE, wpad or system
        """

    /// The elements of all values, in order. A value contains one element, or several with commas between them.
    package static func parse(_ values: [String]) throws(ParentsError) -> [ParentSource] {
        var sources: [ParentSource] = []
        for value in values {
            for element in elements(of: value) { sources.append(try parse(element: element)) }
        }
        return sources
    }

    /// Splits at the commas before which an element ends. In the URL or path of a script, a comma is a character like
    /// any other unless a new element begins after it.
    private static func elements(of value: String) -> [Substring] {
        var elements: [Substring] = []
        for part in value.split(separator: ",", omittingEmptySubsequences: false) {
            if let last = elements.last, isScript(last), !beginsElement(part) {
                elements[elements.count - 1] = value[last.startIndex..<part.endIndex]
            } else {
                elements.append(part)
            }
        }
        return elements
    }

    private static func isScript(_ text: Substring) -> Bool { text.trimmed.hasPrefix("pac:") }

    private static func beginsElement(_ text: Substring) -> Bool {
        let text = text.trimmed
        return words.contains { $0.text == text } || isScript(text)
            || ParentProxy.Kind.allCases.contains { text.hasPrefix($0.rawValue + "://") }
    }

    private static func parse(element: Substring) throws(ParentsError) -> ParentSource {
        let text = element.trimmed
        guard !text.isEmpty else {
            throw ParentsError(.malformedSetting, "\(setting): an element is empty", hint: hint)
        }
        if let word = words.first(where: { $0.text == text.lowercased() }) { return word.source }
        if text.lowercased().hasPrefix("pac:") { return .script(try script(text.dropFirst(4))) }
        guard text.contains("://") || text.utf8.contains(UInt8(ascii: "@")) else { throw unknown(text) }
        return .hop(.parent(try ParentText(setting: setting, defaultKind: nil).parse(text)))
    }

    private static func script(_ text: Substring) throws(ParentsError) -> ScriptSource {
        let lowercase = text.lowercased()
        guard !text.isEmpty else {
            throw ParentsError(.malformedSetting, "\(setting): pac: has no URL and no file", hint: hint)
        }
        if lowercase.hasPrefix("file:///") { return .file(String(text.dropFirst("file://".count))) }
        guard lowercase.hasPrefix("http://") || lowercase.hasPrefix("https://") else {
            guard !text.contains("://") else {
                throw ParentsError(
                    .malformedSetting, "\(setting): the script's URL is neither http nor https nor a file", hint: hint)
            }
            return .file(String(text))
        }
        let authority = text.dropFirst(lowercase.hasPrefix("https") ? 8 : 7).prefix { !"/?#".contains($0) }
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw ParentsError(
                .userInfo, "\(setting): a user name or password is not allowed in the URL of a script")
        }
        do throws(HostNameError) {
            return .url(try AbsoluteURL(parsing: String(text)).description)
        } catch {
            throw ParentsError(.malformedSetting, "\(setting): \(error.detail)", hint: error.hint)
        }
    }

    private static func unknown(_ text: Substring) -> ParentsError {
        let meant = SpellingHint.closest(to: String(text), among: words.map(\.text))
        let isHost = text.utf8.contains(UInt8(ascii: ":")) || text.utf8.contains(UInt8(ascii: "."))
        return ParentsError(
            .malformedSetting, "\(setting): unknown parent \(PrintableText.quote(text))",
            hint: meant.map { "did you mean \($0)?" } ?? (isHost ? "write http://\(text) for an HTTP proxy" : hint))
    }
}

extension Substring {
    /// Without the spaces and tabs at both ends.
    var trimmed: Substring {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
