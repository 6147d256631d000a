// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The handlers of the series that are in use, so that a record makes no strings. A dictionary would take 370
/// instructions more per record, most of them for SipHash. Peers do not choose the keys, so a weaker hash is enough.
final class HandlerTable<Key: HandlerKey, Handler: Sendable>: Sendable {
    private typealias Entry = (key: Key, handler: Handler)

    private let state = Mutex((slots: [[Entry]](repeating: [], count: 1_024), count: 0))

    /// The handler for `key`, which `make` makes if there is none.
    func handler(_ key: Key, make: () -> Handler) -> Handler {
        let slot = Int(truncatingIfNeeded: key.hash & 1_023)
        let known: Handler? = state.withLock {
            for entry in $0.slots[slot] where entry.key == key { return entry.handler }
            return nil
        }
        if let known { return known }
        let made = make()
        state.withLock {
            // Lines of the list move when it is edited, so keys may go out of use. The factory has the values.
            if $0.count >= 4_000 { $0 = (Array(repeating: [], count: 1_024), 0) }
            $0.slots[slot].append((key, made))
            $0.count += 1
        }
        return made
    }
}

protocol HandlerKey: Equatable, Sendable {
    /// Equal for equal keys, and spread over its lower bits.
    var hash: UInt64 { get }
}

/// Mixes numbers and texts, eight bytes at a time.
struct KeyHash {
    private(set) var value: UInt64 = 0

    mutating func add(_ number: UInt64) {
        value = (value ^ number) &* 0x9E37_79B9_7F4A_7C15
        value ^= value >> 32
    }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var offset = 0
            while offset + 8 <= bytes.count {
                add(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                offset += 8
            }
            var rest = UInt64(bytes.count)
            for byte in bytes[offset...] { rest = rest << 8 | UInt64(byte) }
            add(rest)
        }
    }
}
