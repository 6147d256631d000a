// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignHome
import CountersignReporting

/// `--json` and `--no-header`, for commands that list.
struct ListOptions: ParsableArguments {
    @Flag(help: "Write JSON to standard output.")
    var json = false

    @Flag(help: "Leave out the header row.")
    var noHeader = false

    /// Writes the rows under their header; without rows, nothing.
    func show(_ header: [String], _ rows: [[String]]) {
        guard !rows.isEmpty else { return }
        Console.result(TextTable(rows: (noHeader ? [] : [header]) + rows).text)
    }

    /// Says on standard error that there is nothing to list. `what` is a sentence such as `no site is listed`.
    static func empty(_ what: String, in home: Home, hint: String) {
        let isThere = (try? home.exists()) ?? true
        Console.warning(isThere ? "\(what) in \(home.path)" : "\(what): \(home.missing.detail)", hint: hint)
    }
}
