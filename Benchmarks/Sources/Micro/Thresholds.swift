// SPDX-License-Identifier: Apache-2.0

/// The permitted allocations of each benchmark, stored in `Benchmarks/thresholds.txt`.
struct Thresholds {
    struct Line: Equatable {
        let hold: Benchmark.Hold
        let allocations: Int
        let bytes: Int
    }

    static let fileName = "Benchmarks/thresholds.txt"
    /// The factor by which `--update` raises a threshold that includes OpenSSL's allocations.
    private static let margin = 1.1
    /// A figure below this share of its threshold is reported, so that the threshold can be lowered.
    private static let farBelow = 0.8

    private(set) var lines: [String: Line] = [:]

    init() {}

    init(parsing text: String) throws {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.prefix { $0 != "#" }.split(separator: " ")
            if words.isEmpty { continue }
            guard words.count == 4, let hold = Benchmark.Hold(rawValue: String(words[1])),
                let allocations = Int(words[2]), let bytes = Int(words[3]), lines[String(words[0])] == nil
            else { throw SetUpFailure("\(Self.fileName):\(index + 1): not a threshold: \"\(line)\"") }
            lines[String(words[0])] = Line(hold: hold, allocations: allocations, bytes: bytes)
        }
    }

    /// The thresholds that the figures exceed, and those that can be lowered.
    func check(_ figures: Figures) -> (faults: [String], notes: [String]) {
        guard let line = lines[figures.name] else {
            return (["\(figures.name) has no threshold in \(Self.fileName); --update writes one"], [])
        }
        var faults: [String] = []
        var notes: [String] = []
        for (unit, figure, threshold) in [
            ("allocations", figures.allocations, line.allocations), ("bytes", figures.bytes, line.bytes),
        ] {
            let isLow = line.hold == .exactly ? figure < threshold : Double(figure) < Double(threshold) * Self.farBelow
            if figure > threshold {
                faults.append("\(figures.name): \(figure) \(unit) per operation; the threshold is \(threshold)")
            } else if isLow {
                notes.append(
                    "\(figures.name): \(figure) \(unit) per operation; lower the threshold of \(threshold) (--update)"
                )
            }
        }
        return (faults, notes)
    }

    mutating func update(_ figures: Figures) {
        let scale = figures.hold == .exactly ? 1 : Self.margin
        func threshold(_ bounds: ClosedRange<Int>) -> Int { Int((Double(bounds.upperBound) * scale).rounded(.up)) }
        lines[figures.name] = Line(
            hold: figures.hold, allocations: threshold(figures.allocationBounds), bytes: threshold(figures.byteBounds))
    }

    /// The file's text: the thresholds of `names`, in that order.
    func text(inOrderOf names: [String]) -> String {
        let head = """
            # Permitted allocations per operation: = (exactly) or <= (includes OpenSSL's), count, bytes.
            # `swift run -c release --package-path Benchmarks micro --check` checks them, `--update` writes them.

            """
        return head
            + names.compactMap { name in
                lines[name].map { line in
                    Column.left(name, 30) + Column.left(line.hold.rawValue, 3) + Column.right("\(line.allocations)", 6)
                        + Column.right("\(line.bytes)", 11) + "\n"
                }
            }.joined()
    }
}

/// Text padded to the width of a column.
enum Column {
    static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
