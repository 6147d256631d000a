// SPDX-License-Identifier: Apache-2.0

/// Formats the figures for people or for programs.
enum Report {
    static let title =
        Column.left("benchmark", 30) + Column.right("ns, median", 14) + Column.right("ns, minimum", 14)
        + Column.right("instructions", 14) + Column.right("allocations", 13) + Column.right("bytes", 11)

    static func row(_ figures: Figures) -> String {
        Column.left(figures.name, 30) + Column.right(number(figures.medianNanoseconds), 14)
            + Column.right(number(figures.leastNanoseconds), 14)
            + Column.right(figures.instructions.map(number) ?? "-", 14)
            + Column.right(range(figures.allocations, figures.allocationBounds), 13)
            + Column.right(range(figures.bytes, figures.byteBounds), 11)
    }

    /// An array of objects, without `instructions` if they were not counted. The names need no escaping.
    static func json(_ all: [Figures]) -> String {
        let objects = all.map { figures in
            var members = [
                "\"name\": \"\(figures.name)\"", "\"nanosecondsMedian\": \(number(figures.medianNanoseconds))",
                "\"nanosecondsLeast\": \(number(figures.leastNanoseconds))",
                "\"allocations\": \(figures.allocations)", "\"bytes\": \(figures.bytes)",
            ]
            if let instructions = figures.instructions { members.append("\"instructions\": \(number(instructions))") }
            return "  {" + members.joined(separator: ", ") + "}"
        }
        return "[\n" + objects.joined(separator: ",\n") + "\n]"
    }

    /// With one decimal below one hundred.
    private static func number(_ value: Double) -> String {
        value < 100 ? "\((value * 10).rounded() / 10)" : "\(Int(value.rounded()))"
    }

    /// With `~` if not all samples were equal.
    private static func range(_ median: Int, _ bounds: ClosedRange<Int>) -> String {
        bounds.count == 1 ? "\(median)" : "~\(median)"
    }
}
