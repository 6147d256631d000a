// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A pattern of `paths=`, such as `/api/v1/**`: literal segments, `*` for any part of one segment, and `**` for any
/// number of whole segments, also none.
package struct PathPattern: Hashable, Sendable {
    enum Segment: Hashable, Sendable {
        case literal([UInt8])
        /// The octets between the stars: one piece more than there are stars.
        case wildcard([[UInt8]])
        /// `**`.
        case anything
    }

    /// An error in a pattern. `offset` counts the Unicode scalars before it.
    struct Fault: Error {
        let offset: Int
        let message: String
        let hint: String
    }

    let segments: [Segment]
    /// As written.
    package let text: String

    /// `/**`.
    static let everything = PathPattern(segments: [.anything], text: "/**")

    private init(segments: [Segment], text: String) {
        self.segments = segments
        self.text = text
    }

    init(parsing text: String) throws(Fault) {
        self.text = text
        func fault(_ message: String, _ hint: String, at offset: Int = 0) -> Fault {
            Fault(offset: offset, message: "\(PrintableText.quoteASCII(text)): \(message)", hint: hint)
        }
        guard text.unicodeScalars.first == "/" else {
            throw fault("a path begins with /", "write the path without the site, such as /api/v1/**")
        }
        for mark in text.unicodeScalars where "?;\\".unicodeScalars.contains(mark) {
            let reason =
                switch mark {
                case "?": ("the query is not compared", "end the path before the ?")
                case ";": ("parameters of segments are not compared", "leave out the ; and what follows it")
                default: ("requests with a backslash are refused", "separate segments with /")
                }
            throw fault(
                reason.0, reason.1,
                at: text.unicodeScalars.distance(
                    from: text.startIndex, to: text.unicodeScalars.firstIndex(of: mark) ?? text.startIndex))
        }
        var segments: [Segment] = []
        var offset = 1
        let parts = text == "/" ? [] : Self.parts(of: text.unicodeScalars.dropFirst(), "/")
        for (index, part) in parts.enumerated() {
            if part.isEmpty {
                throw index == parts.count - 1
                    ? fault(
                        "a slash at the end makes no difference",
                        "write \(text.dropLast()), or \(text)** for everything below it as well", at: offset)
                    : fault("empty segments are not compared", "write one / only", at: offset)
            }
            if part == "." || part == ".." {
                throw fault(
                    "dot segments are resolved before the comparison", "write the path without them", at: offset)
            }
            if part != "**", Self.parts(of: part.unicodeScalars, "*").dropFirst().dropLast().contains("") {
                throw fault("** is a whole segment", "write /**/ between slashes, or one * for a part", at: offset)
            }
            if part == "**", segments.last == .anything {
                throw fault("** follows **", "write one of them", at: offset)
            }
            do {
                segments.append(try Self.segment(part))
            } catch {
                throw fault(
                    "the path \(error.rawValue)", "requests with such a path are refused: remove it", at: offset)
            }
            offset += part.unicodeScalars.count + 1
        }
        self.segments = segments
    }

    /// Split at the scalar, which may be followed by a combining one.
    private static func parts(of text: some BidirectionalCollection<Unicode.Scalar>, _ mark: Unicode.Scalar) -> [String]
    {
        text.split(separator: mark, omittingEmptySubsequences: false).map { String(String.UnicodeScalarView($0)) }
    }

    private static func segment(_ part: String) throws(CanonicalPath.Fault) -> Segment {
        guard part != "**" else { return .anything }
        var pieces: [[UInt8]] = []
        for piece in parts(of: part.unicodeScalars, "*") {
            // The dots of `*.git` or `a.*` are not dot segments, so that a letter stands before them.
            let read = try CanonicalPath(ArraySlice("/x\(piece)".utf8))
            pieces.append(Array(read[0].dropFirst()))
        }
        return pieces.count == 1 ? .literal(pieces[0]) : .wildcard(pieces)
    }

    /// The same for paths in lower case.
    func ignoringCase() -> PathPattern {
        func folded(_ octets: [UInt8]) -> [UInt8] { CanonicalPath.lowercased(octets[...]) }
        let segments = segments.map { segment -> Segment in
            switch segment {
            case .literal(let octets): .literal(folded(octets))
            case .wildcard(let pieces): .wildcard(pieces.map(folded))
            case .anything: .anything
            }
        }
        return PathPattern(segments: segments, text: text)
    }

    /// The literal segments that the pattern begins with.
    var beginning: [[UInt8]] {
        var beginning: [[UInt8]] = []
        for case .literal(let octets) in segments.prefix(while: { if case .literal = $0 { true } else { false } }) {
            beginning.append(octets)
        }
        return beginning
    }

    var isLiteral: Bool { beginning.count == segments.count }

    // MARK: Matching

    func matches(_ path: CanonicalPath) -> Bool {
        var (here, there) = (0, 0)
        // Where the last `**` stands, and the first segment that it has not taken yet.
        var retry: (here: Int, there: Int)?
        while there < path.count {
            if here < segments.count, segments[here] == .anything {
                retry = (here, there)
                here += 1
            } else if here < segments.count, segments[here].matches(path[there]) {
                here += 1
                there += 1
            } else if let last = retry {
                retry = (last.here, last.there + 1)
                (here, there) = (last.here + 1, last.there + 1)
            } else {
                return false
            }
        }
        return segments[here...].allSatisfy { $0 == .anything }
    }
}

extension PathPattern.Segment {
    fileprivate func matches(_ segment: ArraySlice<UInt8>) -> Bool {
        switch self {
        case .anything: true
        case .literal(let octets): segment.elementsEqual(octets)
        case .wildcard(let pieces): Self.matches(segment, pieces)
        }
    }

    /// The first piece is at the beginning, the last at the end, and each other one as early as possible in between.
    private static func matches(_ segment: ArraySlice<UInt8>, _ pieces: [[UInt8]]) -> Bool {
        guard let first = pieces.first, let last = pieces.last, pieces.count > 1,
            segment.count >= first.count + last.count, segment.starts(with: first),
            segment.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = segment.dropFirst(first.count).dropLast(last.count)
        for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
            guard let start = rest.indices.first(where: { rest[$0...].starts(with: piece) }) else { return false }
            rest = rest[(start + piece.count)...]
        }
        return true
    }
}
