// SPDX-License-Identifier: Apache-2.0

/// Rows of cells, formatted as aligned columns of text.
package struct TextTable: Equatable, Sendable {
    private let rows: [[String]]

    package init(rows: [[String]]) {
        self.rows = rows
    }

    /// Columns are separated by two spaces. Lines have no trailing spaces, and each ends in a line break.
    package var text: String {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                if column < row.count - 1 { line += String(repeating: " ", count: widths[column] - cell.count + 2) }
            }
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }
}
