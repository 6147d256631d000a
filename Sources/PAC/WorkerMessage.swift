// SPDX-License-Identifier: Apache-2.0

/// A message between this process and the worker: a length (4 bytes, big-endian, of all that follows), a kind (1 byte),
/// and the content.
struct WorkerMessage: Equatable {
    enum Kind: UInt8, CaseIterable {
        // To the worker.

        /// A script. Its content is a request for the prelude without a URL, then a zero byte, then the script.
        /// Answered by ``loaded``, ``fault``, or ``reply`` with the look-up that is missing.
        case load = 1
        /// A request for the prelude.
        case find

        // From the worker.

        /// It has given up its rights.
        case ready = 16
        case loaded
        /// A reply of the prelude.
        case reply
        /// A ``ScriptFault``.
        case fault
    }

    let kind: Kind
    let content: [UInt8]

    static let maximumBytes = PACLimits.scriptBytes + 65536
    static let headerBytes = 5

    init(_ kind: Kind, _ content: [UInt8] = []) {
        self.kind = kind
        self.content = content
    }

    var bytes: [UInt8] {
        let count = UInt32(content.count + 1)
        return (0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(24 - 8 * $0)) } + [kind.rawValue] + content
    }

    /// The kind and the length of the content; nil if these bytes begin no message.
    static func header(_ bytes: some Collection<UInt8>) -> (kind: Kind, count: Int)? {
        guard bytes.count == headerBytes else { return nil }
        let count = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard let last = bytes.dropFirst(4).first, let kind = Kind(rawValue: last), (1...maximumBytes).contains(count)
        else { return nil }
        return (kind, count - 1)
    }
}

/// A script's fault, in the worker's report: a code (1 byte), a line and a column (4 bytes each, big-endian, 0 if
/// unknown), and a text.
struct ScriptFault: Error, Equatable {
    enum Code: UInt8, CaseIterable {
        case syntax = 1
        case thrown
        case outOfMemory
        /// At syntax of a later edition of ECMAScript than the engine's.
        case newerSyntax
    }

    let code: Code
    let line: Int
    let column: Int
    let text: [UInt8]

    init(_ code: Code, line: Int = 0, column: Int = 0, text: [UInt8] = []) {
        self.code = code
        self.line = line
        self.column = column
        self.text = text
    }

    init?(_ content: [UInt8]) {
        guard content.count >= 9, let code = Code(rawValue: content[0]) else { return nil }
        func number(at start: Int) -> Int { content[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
        self.init(code, line: number(at: 1), column: number(at: 5), text: Array(content[9...]))
    }

    var content: [UInt8] {
        func bytes(_ number: Int) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }
        return [code.rawValue] + bytes(line) + bytes(column) + text
    }
}
