// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The RC4 key stream, with which NTLM encrypts its session key; it must not be used for anything else. RC4K and
/// RC4Init of MS-NLMP §6.
package struct RC4: Sendable {
    private var state: [UInt8]
    private var i: UInt8 = 0
    private var j: UInt8 = 0

    /// Creates a stream with a `key` of 1 to 256 bytes.
    package init(key: Secret) {
        precondition((1...256).contains(key.count), "an RC4 key has 1 to 256 bytes")
        var state = Array(UInt8.min...UInt8.max)
        key.withBytes { key in
            var j: UInt8 = 0
            for i in state.indices {
                j = j &+ state[i] &+ key[i % key.count]
                state.swapAt(i, Int(j))
            }
        }
        self.state = state
    }

    /// XORs `bytes` with the next bytes of the stream, which both encrypts and decrypts.
    package mutating func apply(_ bytes: [UInt8]) -> [UInt8] {
        bytes.map { byte in
            i = i &+ 1
            j = j &+ state[Int(i)]
            state.swapAt(Int(i), Int(j))
            return byte ^ state[Int(state[Int(i)] &+ state[Int(j)])]
        }
    }
}
