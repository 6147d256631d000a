// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The rules of a suffix list by name: an open-addressed hash table of offsets into the list's bytes, which avoids a
/// string for each of ten thousand rules.
struct SuffixTable: Sendable {
    struct Kinds: OptionSet, Sendable {
        let rawValue: UInt8
        static let plain = Kinds(rawValue: 1)
        static let wildcard = Kinds(rawValue: 2)
        static let exception = Kinds(rawValue: 4)
    }

    /// A name of 1 to 253 bytes at an offset. Length 0 marks a free slot.
    private struct Slot {
        var offset: UInt32 = 0
        var length: UInt8 = 0
        var kinds: Kinds = []
    }

    private var bytes: [UInt8]
    private var slots: [Slot]
    private var count = 0

    /// A table for names in `bytes`. Names beyond 4 GiB are not inserted.
    init(over bytes: [UInt8]) {
        self.bytes = bytes
        var room = 16
        while room < bytes.count / 16 { room *= 2 }
        slots = [Slot](repeating: Slot(), count: room)
    }

    /// Adds `kinds` to the name in this part of the bytes.
    mutating func insert(_ part: Range<Int>, as kinds: Kinds) {
        guard let offset = UInt32(exactly: part.lowerBound), let length = UInt8(exactly: part.count), length > 0 else {
            return
        }
        if count >= slots.count / 4 * 3 { grow() }
        let place = place(of: part)
        if slots[place].length == 0 {
            slots[place] = Slot(offset: offset, length: length)
            count += 1
        }
        slots[place].kinds.formUnion(kinds)
    }

    /// Adds `kinds` to a name that is not in the bytes.
    mutating func insert(_ name: String, as kinds: Kinds) {
        let start = bytes.count
        bytes += name.utf8
        insert(start..<bytes.count, as: kinds)
    }

    func kinds(of name: String) -> Kinds {
        var name = name
        let found = slots[name.withUTF8 { place(of: $0) }]
        return found.length == 0 ? [] : found.kinds
    }

    // MARK: Slots

    /// The slot of the name, or the free slot for it. The table always has a free slot.
    private func place(of name: UnsafeBufferPointer<UInt8>) -> Int {
        let mask = slots.count - 1
        var place = Self.hash(name) & mask
        while slots[place].length != 0, !isName(slots[place], name) { place = (place + 1) & mask }
        return place
    }

    private func isName(_ slot: Slot, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard Int(slot.length) == name.count, let other = name.baseAddress else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { memcmp($0 + Int(slot.offset), other, name.count) == 0 } ?? false
        }
    }

    private func place(of part: Range<Int>) -> Int {
        bytes.withUnsafeBufferPointer { place(of: UnsafeBufferPointer(rebasing: $0[part])) }
    }

    private mutating func grow() {
        let before = slots
        slots = [Slot](repeating: Slot(), count: before.count * 2)
        for slot in before where slot.length != 0 {
            let start = Int(slot.offset)
            slots[place(of: start..<start + Int(slot.length))] = slot
        }
    }

    /// FNV-1a, folded so that the upper half affects the slot.
    private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(truncatingIfNeeded: hash ^ hash >> 32)
    }
}
