// SPDX-License-Identifier: Apache-2.0

/// `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_<n>` and `GIT_CONFIG_VALUE_<n>`, which take precedence over git's configuration
/// files (git-config(1), "ENVIRONMENT"). git prefers `http.proxy` of a file to `https_proxy`.
struct GitSettings {
    private static let key = "http.proxy"
    private static let count = "GIT_CONFIG_COUNT"

    /// The variables to set.
    let variables: [(name: String, value: String)]

    /// Adds `proxy` to the settings in `inherited`. `replacesOwn`: the last of them may be ours.
    init(proxy: String, after inherited: [String: String], replacesOwn: Bool) {
        let index = (replacesOwn ? Self.own(in: inherited) : nil) ?? Self.number(in: inherited)
        variables = [
            (Self.count, String(index + 1)), ("GIT_CONFIG_KEY_\(index)", Self.key),
            ("GIT_CONFIG_VALUE_\(index)", proxy),
        ]
    }

    /// The changes that remove our setting from `inherited`.
    static func off(in inherited: [String: String]) -> (unset: [String], set: [(name: String, value: String)]) {
        guard let index = own(in: inherited) else { return ([], []) }
        let names = ["GIT_CONFIG_KEY_\(index)", "GIT_CONFIG_VALUE_\(index)"]
        return index == 0 ? (names + [count], []) : (names, [(count, String(index))])
    }

    /// git rejects a count that is not a number, so such a count means no settings.
    private static func number(in inherited: [String: String]) -> Int {
        inherited[count].flatMap { Int($0) }.map { max(0, $0) } ?? 0
    }

    private static func own(in inherited: [String: String]) -> Int? {
        let last = number(in: inherited) - 1
        return inherited["GIT_CONFIG_KEY_\(last)"] == key ? last : nil
    }
}
