// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import Glibc

/// The bytes of a file that others write, also after it was replaced or truncated.
final class LogSource {
    private let path: String?
    private var descriptor: Int32
    private var offset: Int64 = 0
    /// Looks at the file that has a name now.
    private let look: (String) -> stat?

    private static let chunkBytes = 256 << 10

    /// Standard input.
    init() {
        path = nil
        look = { _ in nil }
        descriptor = STDIN_FILENO
    }

    init(path: String, look: @escaping (String) -> stat? = LogSource.status(at:)) throws(CountersignError) {
        self.path = path
        self.look = look
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            throw .system(
                errno, "cannot read \(path)",
                hint: "name the file of `countersign serve --access-log FILE`, or - for standard input")
        }
        guard (Self.status(descriptor)?.st_mode ?? 0) & S_IFMT != S_IFDIR else {
            close(descriptor)
            throw CountersignError(
                .environment, "\(path) is a folder",
                hint: "name the file of `countersign serve --access-log FILE`, or - for standard input")
        }
    }

    deinit { if path != nil { close(descriptor) } }

    /// The next bytes; empty at the end of what is there now.
    func next() throws(CountersignError) -> [UInt8] {
        var reason: Int32 = 0
        var count = 0
        repeat {
            let bytes = [UInt8](unsafeUninitializedCapacity: Self.chunkBytes) { buffer, filled in
                count = read(descriptor, buffer.baseAddress, buffer.count)
                reason = errno
                filled = max(count, 0)
            }
            if count >= 0 {
                offset += Int64(count)
                return bytes
            }
        } while reason == EINTR
        throw .system(reason, "cannot read \(path ?? "standard input")")
    }

    enum Change: Equatable {
        case none
        /// There is another file of this name. Its bytes follow.
        case replaced
        /// The file is shorter than what was read of it. Its bytes follow, from the start.
        case truncated
    }

    /// Called at the end of the file. Leaves a renamed file only when its successor is not empty: the writer goes on
    /// with the old one until it has opened the new one.
    func followChange() -> Change {
        guard let path else { return .none }
        // Looked at first: what was written to the present file before its successor got its first line counts.
        let named = look(path)
        guard let current = Self.status(descriptor), current.st_mode & S_IFMT == S_IFREG else { return .none }
        if current.st_size < offset {
            lseek(descriptor, 0, SEEK_SET)
            offset = 0
            return .truncated
        }
        guard let named, named.st_ino != current.st_ino || named.st_dev != current.st_dev,
            named.st_size > 0, current.st_size == offset
        else { return .none }
        let successor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard successor >= 0 else { return .none }
        close(descriptor)
        descriptor = successor
        offset = 0
        return .replaced
    }

    static func status(at path: String) -> stat? {
        var found = stat()
        return stat(path, &found) == 0 ? found : nil
    }

    private static func status(_ descriptor: Int32) -> stat? {
        var found = stat()
        return fstat(descriptor, &found) == 0 ? found : nil
    }
}

/// Splits bytes into lines.
struct LogLines {
    private var rest: [UInt8] = []
    private var isSkipping = false

    /// The longest line, in bytes. An entry is much shorter.
    private static let limitBytes = 256 << 10

    /// The lines that `bytes` complete, without line breaks; nil for one that is too long.
    mutating func lines(in bytes: [UInt8]) -> [[UInt8]?] {
        var lines: [[UInt8]?] = []
        var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
        while let piece = pieces.popFirst() {
            if !isSkipping { rest += piece }
            if rest.count > Self.limitBytes { (rest, isSkipping) = ([], true) }
            guard !pieces.isEmpty else { break }
            lines.append(isSkipping ? nil : rest)
            (rest, isSkipping) = ([], false)
        }
        return lines
    }

    /// The line that has no line break, if there is one. The next bytes begin a line.
    mutating func end() -> [[UInt8]?] {
        defer { (rest, isSkipping) = ([], false) }
        return isSkipping ? [nil] : rest.isEmpty ? [] : [rest]
    }
}
