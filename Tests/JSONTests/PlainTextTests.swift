// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignJSON

@Suite struct PlainTextTests {
    /// The rule for one byte, in each place of a text of which eight bytes are compared at once.
    @Test func textThatNeedsNoEscapeIsFound() {
        for byte in UInt8.min...UInt8.max {
            let isPlain = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            for length in [1, 7, 8, 9, 16, 23] {
                for place in 0..<length {
                    var text = [UInt8](repeating: UInt8(ascii: "~"), count: length)
                    text[place] = byte
                    let found = text.withUnsafeBufferPointer { JSONObject.needsNoEscape($0) }
                    if found != isPlain { Issue.record("byte \(byte) at \(place) of \(length)") }
                }
            }
        }
        #expect([UInt8]().withUnsafeBufferPointer { JSONObject.needsNoEscape($0) })
    }
}
