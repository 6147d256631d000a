// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// MD4 (RFC 1320), for NTLM's password hash only: it is broken as a hash function.
///
/// Implemented here because OpenSSL 3 has it in the legacy provider only.
package enum MD4 {
    package static let lengthBytes = 16
    private static let blockBytes = 64

    /// The digest of `bytes`.
    package static func hash(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// The digest of `bytes`. Overwrites its copy of them.
    package static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var chain = Chain()
        let wholeBlocks = bytes.count / blockBytes * blockBytes
        for start in stride(from: 0, to: wholeBlocks, by: blockBytes) {
            chain.absorb(UnsafeRawBufferPointer(rebasing: bytes[start..<start + blockBytes]))
        }
        let rest = bytes[wholeBlocks...]
        let tailBytes = rest.count < blockBytes - 8 ? blockBytes : 2 * blockBytes
        var tail = [UInt8](repeating: 0, count: tailBytes)
        tail.withUnsafeMutableBytes { tail in
            tail.copyBytes(from: rest)
            tail[rest.count] = 0x80
            tail.storeBytes(of: (UInt64(bytes.count) << 3).littleEndian, toByteOffset: tailBytes - 8, as: UInt64.self)
            for start in stride(from: 0, to: tailBytes, by: blockBytes) {
                chain.absorb(UnsafeRawBufferPointer(rebasing: tail[start..<start + blockBytes]))
            }
            OPENSSL_cleanse(tail.baseAddress, tail.count)
        }
        return chain.words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    /// The four chaining words A, B, C, D (RFC 1320 §3.3).
    private struct Chain {
        var words: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]

        private static let thirdRoundOrder = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]

        /// The three rounds over one block of 64 bytes (RFC 1320 §3.4).
        mutating func absorb(_ block: UnsafeRawBufferPointer) {
            func x(_ index: Int) -> UInt32 {
                UInt32(littleEndian: block.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
            }
            var (a, b, c, d) = (words[0], words[1], words[2], words[3])
            func step(_ mixed: UInt32, _ word: UInt32, shift: UInt32) {
                let sum = a &+ mixed &+ word
                (a, b, c, d) = (d, sum << shift | sum >> (32 - shift), b, c)
            }
            for i in 0..<16 {
                step(b & c | ~b & d, x(i), shift: [3, 7, 11, 19][i % 4])
            }
            for i in 0..<16 {
                step((b & c | b & d | c & d) &+ 0x5A82_7999, x(i % 4 * 4 + i / 4), shift: [3, 5, 9, 13][i % 4])
            }
            for i in 0..<16 {
                step((b ^ c ^ d) &+ 0x6ED9_EBA1, x(Self.thirdRoundOrder[i]), shift: [3, 9, 11, 15][i % 4])
            }
            words = [words[0] &+ a, words[1] &+ b, words[2] &+ c, words[3] &+ d]
        }
    }
}
