// SPDX-License-Identifier: Apache-2.0

/// The user's own values of the variables that a ``ClientEnvironment`` sets or removes. They are kept in the
/// environment, so that `countersign env --off` can restore them.
///
/// `COUNTERSIGN_SAVED` lists the names of all variables of the environment, and `COUNTERSIGN_SAVED_<NAME>` has the
/// value of each that had one.
package struct ReplacedSettings: Sendable {
    static let listVariable = "COUNTERSIGN_SAVED"

    /// All variables that are set or removed, in order.
    let names: [String]
    /// The user's values.
    let values: [String: String]
    /// The inherited environment already has our settings, so ``values`` are older.
    let isRepeated: Bool

    /// Saves the values of `names` in `inherited`, or keeps those that it has saved already.
    init(_ inherited: [String: String], names: [String]) {
        let earlier = ReplacedSettings(savedIn: inherited)
        self.names = names + (earlier?.names.filter { !names.contains($0) } ?? [])
        isRepeated = earlier != nil
        var values = earlier?.values ?? [:]
        for name in names where earlier?.names.contains(name) != true { values[name] = inherited[name] }
        self.values = values
    }

    /// The values that an earlier ``ClientEnvironment`` has saved in `inherited`; nil without an earlier one.
    init?(savedIn inherited: [String: String]) {
        guard let list = inherited[Self.listVariable] else { return nil }
        names = list.split(separator: ":").map(String.init).filter(Self.isName)
        isRepeated = true
        var values: [String: String] = [:]
        for name in names { values[name] = inherited[Self.variable(of: name)] }
        self.values = values
    }

    private static func variable(of name: String) -> String { "\(listVariable)_\(name)" }

    /// The names become shell commands.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }

    /// The variables that save the values.
    var variables: [(name: String, value: String)] {
        names.compactMap { name in values[name].map { (Self.variable(of: name), $0) } }
            + [(Self.listVariable, names.joined(separator: ":"))]
    }

    // MARK: For the user

    /// A sentence about the proxies and exceptions that are no longer used; nil if the user has none, or has read it
    /// when they were first replaced. Contains no password.
    package var warning: String? {
        guard !isRepeated else { return nil }
        let used = values.filter { !$0.value.isEmpty }
        let proxies = names.filter {
            used[$0] != nil && (ClientEnvironment.proxyNames.contains($0) || $0 == "HTTP_PROXY")
        }
        let exceptions = names.filter { used[$0] != nil && $0.lowercased() == "no_proxy" }
        var sentences: [String] = []
        if !proxies.isEmpty {
            let urls = proxies.compactMap { used[$0] }.map(Self.withoutLogin)
            let different = urls.indices.filter { urls.firstIndex(of: urls[$0]) == $0 }.map { urls[$0] }
            sentences.append(
                "\(proxies.joined(separator: ", ")) replaced: Countersign connects directly, not through "
                    + different.joined(separator: ", "))
        }
        if !exceptions.isEmpty {
            sentences.append("\(exceptions.joined(separator: ", ")) removed: Countersign also handles those hosts")
        }
        return sentences.isEmpty ? nil : sentences.joined(separator: "\n")
    }

    private static func withoutLogin(_ url: String) -> String {
        guard let at = url.lastIndex(of: "@") else { return url }
        let scheme = url.firstRange(of: "://").map { url[..<$0.upperBound] } ?? ""
        return "\(scheme)\(url[url.index(after: at)...])"
    }
}
