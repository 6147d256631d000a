// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The paths to which a challenge applies: all at or below a directory. For Basic, it is that of the challenged path
/// (RFC 7617 §2.2).
package struct PathScope: Hashable, Sendable {
    /// The path up to and including the last slash: `/docs/` for `/docs/index.html`.
    package let directory: String

    /// The scope of a challenged request target in origin-form; nil if it has no directory (`*`) or contains a dot
    /// segment (`/a/../b`).
    package init?(challengedPath target: String) {
        let path = Self.path(of: target)
        guard path.first == UInt8(ascii: "/"), let slash = path.lastIndex(of: UInt8(ascii: "/")),
            Self.isPlain(path[...]) || !Self.climbs(path)
        else { return nil }
        self.directory = String(decoding: path[...slash], as: UTF8.self)
    }

    /// All paths of an origin.
    package static let wholeOrigin = PathScope(directory: "/")

    /// The scope of `path` and all below it, for a path that names a directory with or without a last slash. Nil if it
    /// contains a dot segment.
    package init?(below path: String) {
        let path = String(decoding: Self.path(of: path), as: UTF8.self)
        self.init(challengedPath: path.hasSuffix("/") ? path : path + "/")
    }

    private init(directory: String) { self.directory = directory }

    /// Whether the request target `target`, in origin-form, is in the scope. Paths are compared byte by byte, without
    /// decoding; a path with a dot segment, percent-encoded or not, is in no scope.
    package func contains(_ target: String) -> Bool { contains(Array(target.utf8)[...]) }

    /// The same for the bytes of a target.
    package func contains(_ target: ArraySlice<UInt8>) -> Bool {
        let end = target.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? target.endIndex
        let path = target[..<end]
        return path.starts(with: directory.utf8) && (Self.isPlain(path) || !Self.climbs(Array(path)))
    }

    /// Whether the path is unambiguous and no segment begins with a dot.
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

    /// Whether a segment is `.` or `..` to a server that decodes `%2E`, `%2F` and `%5C`, accepts backslashes, or strips
    /// path parameters.
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
