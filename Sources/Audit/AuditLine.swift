// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// Where the lines of an audit are made, one after the other: in one piece of memory, with one context of SHA-256.
struct AuditLine: ~Copyable, Sendable {
    /// The text of the last time, and then the line. Unsafe because of the pointer: only the owner of the value uses
    /// it.
    private nonisolated(unsafe) var memory: UnsafeMutableRawBufferPointer
    private var end = start
    /// The second that ``memory`` begins with, since 1970.
    private var second = Int64.min
    private var digest = RunningDigest(.sha256)

    private static let start = Timestamp.textBytes
    /// Most lines need no more.
    private static let commonBytes = 1024
    private static let hashDigits = MemoryLayout<AuditHash>.size

    init() { memory = .allocate(byteCount: Self.start + Self.commonBytes, alignment: 1) }

    deinit { memory.deallocate() }

    /// The line so far. Valid until the value is changed.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[Self.start..<end]) }

    /// Begins a line.
    mutating func begin(_ number: UInt64) {
        end = Self.start
        put("{\"n\":")
        put(number)
    }

    /// `name` is the member's name, which needs no escapes, between `,"` and `":`.
    mutating func add(_ name: StaticString, _ value: UInt64) {
        put(name)
        put(value)
    }

    mutating func add(_ name: StaticString, _ value: String) {
        put(name)
        put(UInt8(ascii: "\""))
        var value = value
        let isPlain = value.withUTF8 { text in
            guard JSONObject.needsNoEscape(text) else { return false }
            put(UnsafeRawBufferPointer(text))
            return true
        }
        if !isPlain {
            var escaped = JSONObject.escaped(value)
            escaped.withUTF8 { put(UnsafeRawBufferPointer($0)) }
        }
        put(UInt8(ascii: "\""))
    }

    mutating func add(_ name: StaticString, _ time: Timestamp) {
        let text = UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.start])
        if time.seconds == second {
            time.writeMilliseconds(to: text)
        } else {
            time.write(to: text)
            second = time.seconds
        }
        put(name)
        put(UInt8(ascii: "\""))
        reserve(Self.start)
        (memory.baseAddress! + end).copyMemory(from: memory.baseAddress!, byteCount: Self.start)
        end += Self.start
        put(UInt8(ascii: "\""))
    }

    mutating func add(_ name: StaticString, _ hash: AuditHash) {
        put(name)
        put(UInt8(ascii: "\""))
        withUnsafeBytes(of: hash) { put($0) }
        put(UInt8(ascii: "\""))
    }

    /// The object so far.
    var object: [UInt8] { Array(bytes) + [UInt8(ascii: "}")] }

    /// Adds the hash of the line and a line feed. Returns the hash.
    mutating func finish() -> AuditHash {
        put(UInt8(ascii: "}"))
        digest.update(bytes)
        end -= 1
        put(",\"hash\":\"")
        reserve(Self.hashDigits)
        digest.finish(digits: UnsafeMutableRawBufferPointer(rebasing: memory[end..<(end + Self.hashDigits)]))
        let hash = memory.loadUnaligned(fromByteOffset: end, as: AuditHash.self)
        end += Self.hashDigits
        put("\"}\n")
        return hash
    }

    // MARK: Bytes

    private mutating func put(_ bytes: UnsafeRawBufferPointer) {
        guard let first = bytes.baseAddress else { return }
        reserve(bytes.count)
        (memory.baseAddress! + end).copyMemory(from: first, byteCount: bytes.count)
        end += bytes.count
    }

    private mutating func put(_ text: StaticString) {
        put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func put(_ byte: UInt8) {
        reserve(1)
        memory[end] = byte
        end += 1
    }

    private mutating func put(_ number: UInt64) {
        var count = 1
        var rest = number
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        reserve(count)
        rest = number
        for offset in stride(from: end + count - 1, through: end, by: -1) {
            memory[offset] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        end += count
    }

    @inline(__always)
    private mutating func reserve(_ count: Int) {
        if memory.count - end < count { grow(count) }
    }

    @inline(never)
    private mutating func grow(_ count: Int) {
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * memory.count + count, alignment: 1)
        larger.copyMemory(from: UnsafeRawBufferPointer(memory))
        memory.deallocate()
        memory = larger
    }
}

/// SHA-256 in 64 hexadecimal digits, in ASCII.
typealias AuditHash = SIMD64<UInt8>

extension AuditHash {
    /// `text` has 64 digits.
    init(text: String) {
        self.init(repeating: UInt8(ascii: "0"))
        for (index, digit) in text.utf8.prefix(scalarCount).enumerated() { self[index] = digit }
    }

    var text: String { withUnsafeBytes(of: self) { String(decoding: $0, as: UTF8.self) } }
}
