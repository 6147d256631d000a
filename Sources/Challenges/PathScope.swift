// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The paths that one Basic challenge speaks for (RFC 7617 §2.2): all at or below the directory of the path that was challenged.
package struct PathScope: Hashable, Sendable {
    /// Up to and with the last slash: `/docs/` for `/docs/index.html`.
    package let directory: String

    /// From the request target in origin-form that was challenged; nil where it has no directory (`*`) or climbs (`/a/../b`).
    package init?(challengedPath target: String) {
        let path = Self.path(of: target)
        guard path.first == UInt8(ascii: "/"), let slash = path.lastIndex(of: UInt8(ascii: "/")),
            Self.isPlain(path[...]) || !Self.climbs(path)
        else { return nil }
        self.directory = String(decoding: path[...slash], as: UTF8.self)
    }

    /// Whether the request target `target` in origin-form lies in the scope. Compared as written, byte by byte; a path with a dot
    /// segment, percent-encoded or not, lies in none.
    package func contains(_ target: String) -> Bool { contains(Array(target.utf8)[...]) }

    /// The same for the target's octets.
    package func contains(_ target: ArraySlice<UInt8>) -> Bool {
        let end = target.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? target.endIndex
        let path = target[..<end]
        return path.starts(with: directory.utf8) && (Self.isPlain(path) || !Self.climbs(Array(path)))
    }

    /// Nothing in the path can be read in two ways, and no segment begins with a dot.
    private static func isPlain(_ path: ArraySlice<UInt8>) -> Bool {
        var before: UInt8 = 0
        for octet in path {
            switch octet {
            case UInt8(ascii: "%"), UInt8(ascii: "\\"): return false
            case UInt8(ascii: ".") where before == UInt8(ascii: "/"): return false
            default: before = octet
            }
        }
        return true
    }

    private static func path(of target: String) -> [UInt8] {
        Array(target.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
    }

    /// Whether a segment is `.` or `..` to a server that undoes `%2E`, `%2F`, `%5C`, backslashes or path parameters.
    private static func climbs(_ path: [UInt8]) -> Bool {
        var plain: [UInt8] = []
        var index = 0
        while index < path.count {
            let rest = path[index...].prefix(3)
            if rest.count == 3, path[index] == UInt8(ascii: "%"),
                let byte = Hex.decode(String(decoding: rest.dropFirst(), as: UTF8.self))?.first,
                Array("./\\".utf8).contains(byte)
            {
                plain.append(byte)
                index += 3
            } else {
                plain.append(path[index])
                index += 1
            }
        }
        let segments = plain.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return segments.contains { segment in
            let name = segment.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "%") }
            return name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8)
        }
    }
}
