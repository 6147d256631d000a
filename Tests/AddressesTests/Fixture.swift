// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The tables of `Tests/Fixtures/sites`, which its `make` generates with independent programs.
enum Fixture {
    /// The tab-separated rows of a table.
    static func rows(_ name: String) -> [[String]] {
        text("Fixtures/sites/\(name)").split(separator: "\n").map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map { unescaped(String($0)) }
        }
    }

    /// A file of the repository, by its path below `Tests`; empty if it cannot be read.
    static func text(_ path: String, file: String = #filePath) -> String {
        let tests = file.split(separator: "/").dropLast(2).joined(separator: "/")
        guard let stream = fopen("/\(tests)/\(path)", "r") else { return "" }
        defer { fclose(stream) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, stream), count > 0 { bytes += buffer[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Replaces `\u{...}` by the character.
    static func unescaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let first = rest.popFirst() {
            guard first == "\\", rest.starts(with: "u{".unicodeScalars), let end = rest.firstIndex(of: "}"),
                let value = UInt32(String(Substring(rest[..<end].dropFirst(2))), radix: 16),
                let scalar = Unicode.Scalar(value)
            else {
                result.append(first)
                continue
            }
            result.append(scalar)
            rest = rest[rest.index(after: end)...]
        }
        return String(result)
    }
}
