// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The proxies that the person has set on the desktop: GNOME's settings, which other desktops with GTK have too.
package enum DesktopProxies: Hashable, Sendable {
    case script(ScriptSource)
    case proxies(EnvironmentProxies)

    private static let name = "the desktop's proxy setting"

    /// Prints the settings; nothing if the desktop has none.
    package static let command = "gsettings list-recursively org.gnome.system.proxy"

    /// Reads the output of ``command``. Nil if no proxy is set there.
    package init?(output: String) throws(ParentsError) {
        var settings: [Substring: String] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.count == 3, words[0].hasPrefix("org.gnome.system.proxy") else { continue }
            // `mode`, `http host`.
            let group = words[0].dropFirst("org.gnome.system.proxy".count).drop { $0 == "." }
            settings[group.isEmpty ? words[1] : "\(group) \(words[1])"] = String(words[2])
        }
        switch settings["mode"].flatMap(Self.strings)?.first {
        case "auto":
            let url = settings["autoconfig-url"].flatMap(Self.strings)?.first ?? ""
            guard !url.isEmpty else {
                self = .script(.wpad)
                return
            }
            guard case .script(let source)? = try ParentSource.parse(["pac:\(url)"]).first else { return nil }
            self = .script(source)
        case "manual": self = .proxies(try Self.proxies(settings))
        default: return nil
        }
    }

    private static func proxies(_ settings: [Substring: String]) throws(ParentsError) -> EnvironmentProxies {
        func choice(_ group: Substring, _ scheme: String) throws(ParentsError) -> EnvironmentProxies.Choice? {
            let host = settings["\(group) host"].flatMap(strings)?.first ?? ""
            guard !host.isEmpty, let port = settings["\(group) port"].flatMap({ UInt16($0) }), port != 0 else {
                return nil
            }
            let text = "\(scheme)://\(HostText.joined(host, port))"
            return .init(variable: name, parent: try ParentText(setting: name, defaultKind: .http).parse(text))
        }
        let socks = try choice("socks", "socks5h")
        let exceptions = settings["ignore-hosts"].map(strings) ?? []
        return EnvironmentProxies(
            http: try choice("http", "http") ?? socks, https: try choice("https", "http") ?? socks,
            // `*.corp.example` is `.corp.example` in curl's grammar.
            noProxy: exceptions.map { $0.hasPrefix("*.") ? String($0.dropFirst()) : $0 }.joined(separator: ","),
            named: name)
    }

    /// The strings in a value as GVariant prints it: `'text'`, `['one', 'two']` or `@as []`. Quotes and backslashes are
    /// escaped with a backslash.
    private static func strings(_ value: String) -> [String] {
        var found: [String] = []
        var current: String?
        var quote: Character = "'"
        var isEscaped = false
        for character in value {
            guard let text = current else {
                guard character == "'" || character == "\"" else { continue }
                (current, quote) = ("", character)
                continue
            }
            if isEscaped {
                current = text + String(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == quote {
                found.append(text)
                current = nil
            } else {
                current = text + String(character)
            }
        }
        return found
    }
}
