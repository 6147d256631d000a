// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// scrypt (RFC 7914): derives a key from a passphrase and makes guessing the passphrase expensive. Uses 128 · N · r
/// bytes of memory and blocks for the time that filling them takes: call it off the event loops.
package struct Scrypt: Equatable, Sendable {
    /// log2 of the CPU and memory cost N.
    package var costExponent: UInt8
    package var blockSize: UInt32
    package var parallelization: UInt32

    package init(costExponent: UInt8, blockSize: UInt32, parallelization: UInt32) {
        self.costExponent = costExponent
        self.blockSize = blockSize
        self.parallelization = parallelization
    }

    /// Derives a key of `lengthBytes` from `passphrase`.
    package func key(
        from passphrase: Secret, salt: [UInt8], lengthBytes: Int = 32
    ) throws(CryptographyError) -> Secret {
        guard costExponent < 63 else { throw CryptographyError(.invalidParameter, "scrypt cost 2^\(costExponent)") }
        let cost = UInt64(1) << UInt64(costExponent)
        let (bytes, overflow) = cost.multipliedReportingOverflow(by: 128 * UInt64(blockSize) + 1024)
        guard !overflow, bytes < 1 << 36 else {
            throw CryptographyError(.invalidParameter, "scrypt cost 2^\(costExponent)")
        }
        var done: Int32 = 0
        let key = Secret(count: lengthBytes) { output in
            done = passphrase.withBytes { passphrase in
                EVP_PBE_scrypt(
                    passphrase.assumingMemoryBound(to: CChar.self).baseAddress, passphrase.count, salt, salt.count,
                    cost, UInt64(blockSize), UInt64(parallelization), bytes + (1 << 20),
                    output.assumingMemoryBound(to: UInt8.self).baseAddress, output.count)
            }
        }
        guard done == 1 else { throw CryptographyError(.unavailable, "scrypt with N = 2^\(costExponent)") }
        return key
    }
}

/// Random bytes from OpenSSL's generator, which the kernel seeds.
package enum Randomness {
    /// `count` unpredictable bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { output, initialized in
            precondition(RAND_bytes(output.baseAddress, Int32(count)) == 1, "OpenSSL's random number generator failed")
            initialized = count
        }
    }

    /// A secret of `count` unpredictable bytes.
    package static func secret(_ count: Int) -> Secret {
        Secret(count: count) { output in
            let filled = RAND_priv_bytes(output.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(output.count))
            precondition(filled == 1, "OpenSSL's random number generator failed")
        }
    }
}
