// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Octets in memory that is overwritten before it is freed, because there are secrets among them.
struct FieldScratch: ~Copyable {
    /// Memory that is kept between blocks; more is freed.
    private static let keptBytes = 2048

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0

    deinit { FieldScratch.release(memory, count) }

    var octets: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[0..<count]) }

    mutating func append(_ octets: UnsafeRawBufferPointer) {
        guard let source = octets.baseAddress, octets.count > 0 else { return }
        reserve(octets.count)
        memory.baseAddress?.advanced(by: count).copyMemory(from: source, byteCount: octets.count)
        count += octets.count
    }

    /// Appends a field name with a capital letter at the start of each word, as in `Content-Length`.
    mutating func append(capitalising name: UnsafeRawBufferPointer) {
        let start = count
        append(name)
        var startsWord = true
        for index in start..<count {
            let octet = memory[index]
            if startsWord, octet &- 0x61 < 26 { memory[index] = octet - 0x20 }
            startsWord = octet == UInt8(ascii: "-")
        }
    }

    mutating func append(_ literal: StaticString) {
        append(literal.octets)
    }

    mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a part of these octets.
    mutating func append(_ range: Range<Int>) {
        reserve(range.count)
        append(UnsafeRawBufferPointer(rebasing: memory[range]))
    }

    /// Appends what `write` writes into the memory it gets. It returns the length and is called again if that was more
    /// than the memory had.
    mutating func append(about byteCount: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        reserve(byteCount)
        let written = write(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        guard written > memory.count - count else { return count += written }
        reserve(written)
        count += write(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
    }

    /// Overwrites and forgets the octets.
    mutating func clear() {
        if memory.count > FieldScratch.keptBytes {
            FieldScratch.release(memory, memory.count)
            memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        } else if let start = memory.baseAddress {
            explicit_bzero(start, count)
        }
        count = 0
    }

    private mutating func reserve(_ byteCount: Int) {
        guard memory.count - count < byteCount else { return }
        let capacity = max(1024, 2 * memory.count, count + byteCount)
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
        larger.copyMemory(from: octets)
        FieldScratch.release(memory, memory.count)
        memory = larger
    }

    private static func release(_ memory: UnsafeMutableRawBufferPointer, _ byteCount: Int) {
        guard let start = memory.baseAddress else { return }
        explicit_bzero(start, byteCount)
        memory.deallocate()
    }
}

extension StaticString {
    /// Valid for ever.
    var octets: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
