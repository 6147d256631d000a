// SPDX-License-Identifier: Apache-2.0

/// The paths of the lines of one site, by the segments that they begin with.
struct PathTable: Sendable {
    /// One path of a line.
    struct Entry: Comparable, Sendable {
        /// The index of the line.
        let line: Int
        let limits: RequestLimits
        let path: PathPattern
        private let exceptions: [PathPattern]
        /// What makes a path more specific than another, as far as wildcards count: smaller is more specific.
        private let rank: [Int]

        init(line: Int, _ limits: RequestLimits, _ path: PathPattern) {
            self.line = line
            self.limits = limits
            self.path = limits.ignoresCase ? path.ignoringCase() : path
            exceptions = limits.ignoresCase ? limits.exceptions.map { $0.ignoringCase() } : limits.exceptions
            var (octets, stars, manySegments) = (0, 0, 0)
            for segment in path.segments {
                switch segment {
                case .literal(let literal): octets += literal.count
                case .wildcard(let pieces):
                    octets += pieces.reduce(0) { $0 + $1.count }
                    stars += pieces.count - 1
                case .anything: manySegments += 1
                }
            }
            rank = [
                -path.beginning.count, -octets, manySegments, stars,
                limits.methods.isEmpty ? Int.max : limits.methods.count, line,
            ]
        }

        static func < (left: Entry, right: Entry) -> Bool { left.rank.lexicographicallyPrecedes(right.rank) }
        static func == (left: Entry, right: Entry) -> Bool { left.rank == right.rank && left.path == right.path }

        func matches(_ path: CanonicalPath, method: String) -> Bool {
            limits.permits(method: method) && self.path.matches(path) && !exceptions.contains { $0.matches(path) }
        }
    }

    private struct Edge: Hashable {
        let from: Int
        let segment: ArraySlice<UInt8>
    }

    /// The entries that begin with the same literal segments, the most specific first.
    private struct Node {
        /// Those without wildcards.
        var literal: [Entry] = []
        /// Those whose last segment is literal, by that.
        var ending: [ArraySlice<UInt8>: [Entry]] = [:]
        var others: [Entry] = []
    }

    private var nodes = [Node()]
    private var edges: [Edge: Int] = [:]
    let isEmpty: Bool

    init(_ entries: [Entry]) {
        isEmpty = entries.isEmpty
        for entry in entries.sorted() {
            var index = 0
            for segment in entry.path.beginning {
                let edge = Edge(from: index, segment: segment[...])
                if edges[edge] == nil {
                    edges[edge] = nodes.count
                    nodes.append(Node())
                }
                index = edges[edge] ?? 0
            }
            if entry.path.isLiteral {
                nodes[index].literal.append(entry)
            } else if case .literal(let last)? = entry.path.segments.last {
                nodes[index].ending[last[...], default: []].append(entry)
            } else {
                nodes[index].others.append(entry)
            }
        }
    }

    /// The most specific entry for a request.
    func entry(for path: CanonicalPath, method: String) -> Entry? {
        for lists in candidates(for: path) {
            let found = lists.compactMap { list in list.first { $0.matches(path, method: method) } }.min()
            if let found { return found }
        }
        return nil
    }

    /// The entries that may match a path: an element for each beginning of the path, the longest first, with lists that
    /// have the most specific entry first.
    func candidates(for path: CanonicalPath) -> [[[Entry]]] {
        guard !isEmpty else { return [] }
        var passed = [0]
        for index in 0..<path.count {
            guard let next = edges[Edge(from: passed[index], segment: path[index])] else { break }
            passed.append(next)
        }
        return passed.enumerated().reversed().map { depth, index in
            let node = nodes[index]
            let ending = path.count == 0 ? nil : node.ending[path[path.count - 1]]
            return [depth == path.count ? node.literal : [], ending ?? [], node.others]
        }
    }
}
