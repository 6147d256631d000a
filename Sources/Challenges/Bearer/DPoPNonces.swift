// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Synchronization

/// The nonces that servers have given last, by origin (RFC 9449 §8.2 and §9): a proof that answers no response has the
/// last one of its origin, and never one of another.
package final class DPoPNonces: Sendable {
    /// The largest number of origins. Beyond it, the one that has not given a nonce for the longest time is forgotten.
    package static let capacity = 256
    /// The longest nonce, in bytes.
    package static let maximumBytes = 1024

    private struct Entry {
        let nonce: String
        let number: UInt64
    }

    private struct State {
        var entries: [Origin: Entry] = [:]
        var number: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// The nonce in the values of a response's field `DPoP-Nonce`. Nil if there is more than one value, or if it has
    /// other characters than RFC 9449 §8.1 permits: `%x21 / %x23-5B / %x5D-7E`.
    package static func nonce(in values: [String]) -> String? {
        guard values.count == 1, let nonce = values.first, isNonce(nonce) else { return nil }
        return nonce
    }

    /// A response of `origin` has this nonce.
    package func note(_ nonce: String, of origin: Origin) {
        state.withLock { state in
            state.number &+= 1
            state.entries[origin] = Entry(nonce: nonce, number: state.number)
            guard state.entries.count > Self.capacity,
                let oldest = state.entries.min(by: { $0.value.number < $1.value.number })
            else { return }
            state.entries[oldest.key] = nil
        }
    }

    package func nonce(of origin: Origin) -> String? { state.withLock { $0.entries[origin]?.nonce } }

    private static func isNonce(_ text: String) -> Bool {
        (1...maximumBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
    }
}
