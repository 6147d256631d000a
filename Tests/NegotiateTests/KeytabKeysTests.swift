// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignNegotiate

@Suite struct KeytabKeysTests {
    private func shape(_ bytes: [UInt8]) -> [[UInt32]]? {
        KeytabKeys.with(Secret(bytes)) { keys in
            keys.map { [UInt32(bitPattern: $0.encryptionType), $0.version, UInt32($0.length)] }
        }
    }

    @Test func eachKeyIsRead() {
        #expect(
            shape([0, 0, 0, 18, 0, 0, 0, 2, 0, 1, 7, 0xFF, 0xFF, 0xFF, 0x7B, 0, 0, 1, 0, 0, 2, 8, 9])
                == [[18, 2, 1], [0xFFFF_FF7B, 256, 2]])
    }

    @Test(arguments: [[], [0], [0, 0, 0, 18, 0, 0, 0, 2, 0, 0], [0, 0, 0, 18, 0, 0, 0, 2, 0, 2, 7]] as [[UInt8]])
    func nothingElseIsRead(bytes: [UInt8]) {
        #expect(shape(bytes) == nil)
    }

    @Test func eachCutIsRefused() {
        let whole: [UInt8] = [0, 0, 0, 18, 0, 0, 0, 2, 0, 3, 7, 8, 9]
        for count in 0..<whole.count { #expect(shape(Array(whole.prefix(count))) == nil, "\(count)") }
    }
}
