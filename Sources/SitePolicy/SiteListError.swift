// SPDX-License-Identifier: Apache-2.0

/// All errors in the allowed-sites list, in the order of files and lines.
package struct SiteListError: Error, Equatable, Sendable, CustomStringConvertible {
    package struct Problem: Equatable, Sendable, CustomStringConvertible {
        package let file: String
        /// Counted from 1.
        package let line: Int
        /// Counted from 1 in Unicode scalars; a tab is one.
        package let column: Int
        package let message: String
        /// The remedy, if one is known.
        package let hint: String?

        package init(file: String, line: Int, column: Int, message: String, hint: String? = nil) {
            self.file = file
            self.line = line
            self.column = column
            self.message = message
            self.hint = hint
        }

        /// `AllowedSites/work.sites:3:14: unknown option "awnser"`.
        package var description: String { "\(file):\(line):\(column): \(message)" }
    }

    package let problems: [Problem]

    package init(problems: [Problem]) {
        self.problems = problems
    }

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}
