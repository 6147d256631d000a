// SPDX-License-Identifier: Apache-2.0

package import CountersignHome
import Glibc

/// The proxies of git's configuration that are for one URL or one remote: `http.<url>.proxy` and `remote.<name>.proxy`
/// (git-config(1)). git prefers them to ``GitSettings``, so that its requests bypass Countersign.
package struct GitOverrides: Equatable, Sendable {
    /// The keys, without a login in their URLs.
    let keys: [String]

    /// Asks the git in the `PATH` of `environment`, which also reads the configuration of a repository in the current
    /// folder. Empty if there is no git.
    package init(environment: [String: String]) {
        let folders = (environment["PATH"] ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        let candidates: [String] = folders.map { "\($0)/git" }
        let program = candidates.first { access($0, X_OK) == 0 }
        guard let program else {
            keys = []
            return
        }
        let words = [program, "config", "--name-only", "--null", "--get-regexp", #"^(http|remote)\..+\.proxy$"#]
        let outcome = try? HelperProgram(words: words, environment: environment).run()
        // git exits with 1 if it finds no such key.
        let found = outcome?.status == 0 ? outcome?.output ?? [] : []
        var keys: [String] = []
        for key in found.split(separator: 0).map({ Self.withoutLogin(String(decoding: $0, as: UTF8.self)) })
        where !keys.contains(key) { keys.append(key) }
        // `git -c http.proxy=…` sets it for its child processes; it takes precedence over GIT_CONFIG_COUNT.
        if environment["GIT_CONFIG_PARAMETERS"]?.lowercased().contains("'http.proxy") == true {
            keys.append("http.proxy in GIT_CONFIG_PARAMETERS")
        }
        self.keys = keys
    }

    /// Nil without such keys.
    package var warning: Diagnostic? {
        guard !keys.isEmpty else { return nil }
        return Diagnostic(
            "git prefers \(keys.joined(separator: ", ")) of its configuration, so that these requests bypass Countersign",
            hint: "`git config --show-origin --get-regexp '\\.proxy$'` shows the files")
    }

    private static func withoutLogin(_ key: String) -> String {
        guard let scheme = key.firstRange(of: "://"), let at = key[scheme.upperBound...].lastIndex(of: "@") else {
            return key
        }
        return "\(key[..<scheme.upperBound])\(key[key.index(after: at)...])"
    }
}
