// SPDX-License-Identifier: Apache-2.0

/// The path of a request in the one form in which rules compare it: the octets of its segments.
///
/// The origin gets the path as the client wrote it, only without dot segments, so a rule may only rely on what all
/// servers agree on. Percent
/// encoding is undone once (RFC 3986 §2.3), `;parameters` of segments are dropped (§3.3), `.` and `..` are resolved
/// (§5.2.4), empty segments count for nothing, and so does a slash at the end. Where servers are known to disagree,
/// there is a ``Fault`` in place of a path.
package struct CanonicalPath: Equatable, Sendable {
    /// Why a path cannot be compared: servers read it in different ways.
    package enum Fault: String, Error, CaseIterable, Sendable {
        case noPath = "is not a path"
        case fragment = "has a fragment"
        case encodedDot = "has an encoded dot (%2E)"
        case encodedSlash = "has an encoded slash (%2F)"
        case encodedBackslash = "has an encoded backslash (%5C)"
        case encodedSemicolon = "has an encoded semicolon (%3B)"
        case backslash = "has a backslash"
        case control = "has a control character"
        case malformedEncoding = "has a % without two hexadecimal digits"
        case encodedTwice = "is percent-encoded twice"
        case notUTF8 = "is not UTF-8"
        case dotsWithParameters = "has parameters after a dot segment"
        case dotsAfterEmptySegment = "goes back over an empty segment"
        /// Also without its dot segments and parameters. Servers that read a reference (RFC 3986 §4.2) take the next
        /// segment for a host.
        case emptyBeginning = "begins with two slashes"
        case encodedQuery = "has an encoded ? or # (%3F, %23)"
        /// Only if the rule ignores case, as servers do whose file systems drop such ends.
        case droppedEnd = "has a segment that ends with a dot or a space"
    }

    /// The octets of the segments, one after the other, without encoding.
    private let octets: [UInt8]
    /// Where each segment ends in ``octets``.
    private let ends: [Int]

    /// `target` is in origin-form (RFC 9112 §3.2.1). The query does not count.
    package init(_ target: ArraySlice<UInt8>) throws(Fault) {
        guard target.first == UInt8(ascii: "/") else { throw .noPath }
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        guard !path.contains(UInt8(ascii: "#")) else { throw .fragment }
        guard !Self.beginsEmpty(path) else { throw .emptyBeginning }
        var stack = SegmentStack()
        var start = path.startIndex + 1
        while start <= path.endIndex {
            let end = path[start...].firstIndex(of: UInt8(ascii: "/")) ?? path.endIndex
            try stack.append(path[start..<end], isLast: end == path.endIndex)
            start = end + 1
        }
        guard !stack.isAmbiguous else { throw .dotsAfterEmptySegment }
        // `/.//a` reaches the origin as `//a`.
        if stack.hadDots, let clean = Self.withoutDotSegments(path), Self.beginsEmpty(clean[...]) {
            throw .emptyBeginning
        }
        (octets, ends) = (stack.octets, stack.ends)
        guard octets.allSatisfy({ $0 < 0x80 }) || segments.allSatisfy({ String(validating: $0, as: UTF8.self) != nil })
        else { throw .notUTF8 }
    }

    /// The target without `.` and `..` segments (RFC 3986 §5.2.4), as the origin gets it: many servers route by the
    /// path as it was sent. Nil if there are none. `target` must have no ``Fault``.
    package static func withoutDotSegments(_ target: ArraySlice<UInt8>) -> [UInt8]? {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        let raw = path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        func isDots(_ segment: ArraySlice<UInt8>) -> Bool {
            segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8)
        }
        guard path.first == UInt8(ascii: "/"), raw.contains(where: isDots) else { return nil }
        var kept: [ArraySlice<UInt8>] = []
        for (index, segment) in raw.enumerated() {
            guard isDots(segment) else {
                kept.append(segment)
                continue
            }
            if segment.count == 2 { _ = kept.popLast() }
            if index == raw.count - 1 { kept.append([]) }
        }
        return Array("/".utf8) + Array(kept.joined(separator: "/".utf8)) + target[path.endIndex...]
    }

    /// Whether the first segment of a path is empty, also once its parameters are dropped (`/;/a`), and something
    /// follows it.
    private static func beginsEmpty(_ path: ArraySlice<UInt8>) -> Bool {
        let rest = path.dropFirst()
        guard let first = rest.first, first == UInt8(ascii: "/") || first == UInt8(ascii: ";"),
            let end = rest.firstIndex(of: UInt8(ascii: "/"))
        else { return false }
        return !rest[end...].allSatisfy { $0 == UInt8(ascii: "/") }
    }

    private init(octets: [UInt8], ends: [Int]) {
        self.octets = octets
        self.ends = ends
    }

    package var count: Int { ends.count }

    package subscript(index: Int) -> ArraySlice<UInt8> {
        octets[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }

    package var segments: [ArraySlice<UInt8>] { ends.indices.map { self[$0] } }

    /// The same with all letters in lower case. Throws if a server that ignores case may drop the end of a segment.
    package func ignoringCase() throws(Fault) -> CanonicalPath {
        var folded: [UInt8] = []
        var foldedEnds: [Int] = []
        for segment in segments {
            guard segment.last != UInt8(ascii: "."), segment.last != UInt8(ascii: " ") else { throw .droppedEnd }
            folded += Self.lowercased(segment)
            foldedEnds.append(folded.count)
        }
        return CanonicalPath(octets: folded, ends: foldedEnds)
    }

    static func lowercased(_ octets: ArraySlice<UInt8>) -> [UInt8] {
        guard octets.allSatisfy({ $0 < 0x80 }) else {
            return Array(String(decoding: octets, as: UTF8.self).lowercased().utf8)
        }
        return octets.map { $0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z") ? $0 | 0x20 : $0 }
    }
}

/// The segments of a path while it is read.
private struct SegmentStack {
    private(set) var octets: [UInt8] = []
    private(set) var ends: [Int] = []
    /// The segments with the empty ones in between, as some servers count them for `..`: true for an empty one.
    private var isEmpty: [Bool] = []
    /// A `..` led back over an empty segment, so that it depends on the server where it leads.
    private(set) var isAmbiguous = false
    /// There was a `.` or `..` segment.
    private(set) var hadDots = false

    mutating func append(_ raw: ArraySlice<UInt8>, isLast: Bool) throws(CanonicalPath.Fault) {
        let start = octets.count
        let name = raw.prefix { $0 != UInt8(ascii: ";") }
        octets += try Self.decoded(name)
        // Parameters must not hide anything that a server looks for in the whole path.
        _ = try Self.decoded(raw[name.endIndex...])
        let length = octets.count - start
        switch name.elementsEqual("..".utf8) ? 2 : name.elementsEqual(".".utf8) ? 1 : 0 {
        case 0 where length == 0:
            if !isLast { isEmpty.append(true) }
        case 0:
            ends.append(octets.count)
            isEmpty.append(false)
        case let dots:
            guard name.endIndex == raw.endIndex else { throw .dotsWithParameters }
            hadDots = true
            octets.removeLast(length)
            if dots == 2 { goBack() }
        }
    }

    private mutating func goBack() {
        if isEmpty.popLast() == true { isAmbiguous = true }
        guard ends.popLast() != nil else { return }
        octets.removeLast(octets.count - (ends.last ?? 0))
    }

    private static func decoded(_ raw: ArraySlice<UInt8>) throws(CanonicalPath.Fault) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = raw.startIndex
        while index < raw.endIndex {
            let (octet, next) = try octet(of: raw, at: index)
            decoded.append(octet)
            index = next
        }
        for index in decoded.indices where decoded[index] == UInt8(ascii: "%") && isEncoding(decoded[(index + 1)...]) {
            throw .encodedTwice
        }
        return decoded
    }

    private static func octet(
        of raw: ArraySlice<UInt8>, at index: Int
    ) throws(CanonicalPath.Fault) -> (octet: UInt8, next: Int) {
        let octet = raw[index]
        switch octet {
        case UInt8(ascii: "\\"): throw .backslash
        case 0..<0x20, 0x7F: throw .control
        case UInt8(ascii: "%"): break
        default: return (octet, index + 1)
        }
        guard let decoded = hexadecimal(raw[(index + 1)...]) else { throw .malformedEncoding }
        switch decoded {
        case UInt8(ascii: "."): throw .encodedDot
        case UInt8(ascii: "/"): throw .encodedSlash
        case UInt8(ascii: "\\"): throw .encodedBackslash
        case UInt8(ascii: ";"): throw .encodedSemicolon
        case UInt8(ascii: "?"), UInt8(ascii: "#"): throw .encodedQuery
        case 0..<0x20, 0x7F: throw .control
        default: return (decoded, index + 3)
        }
    }

    /// Whether a server that decodes twice reads something else after the `%`.
    private static func isEncoding(_ rest: ArraySlice<UInt8>) -> Bool {
        rest.first == UInt8(ascii: "u") || rest.first == UInt8(ascii: "U") || hexadecimal(rest) != nil
    }

    /// The value of the two digits that `text` begins with.
    private static func hexadecimal(_ text: ArraySlice<UInt8>) -> UInt8? {
        guard text.count >= 2, let high = digit(text[text.startIndex]), let low = digit(text[text.startIndex + 1])
        else { return nil }
        return high << 4 | low
    }

    private static func digit(_ octet: UInt8) -> UInt8? {
        switch octet {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): octet - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): octet - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): octet - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
