// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignHTTP1

@Suite struct ScanningTests {
    @Test func tokenOctetsMatchTheGrammar() {
        let tokens = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for octet in UInt8.min...UInt8.max { #expect(Octet.isToken(octet) == tokens.contains(octet), "\(octet)") }
    }

    @Test func scansFindEachOctetAtEachOffset() {
        for octet in UInt8.min...UInt8.max {
            let isControl = octet < 0x20 || octet == 0x7F
            let isVisible = octet > 0x20 && octet < 0x7F
            for place in 0..<19 {
                var bytes = [UInt8](repeating: 0x61, count: 19)
                bytes[place] = octet
                #expect(bytes.span.bytes.firstControl(from: 0) == (isControl ? place : 19), "\(octet) at \(place)")
                #expect(bytes.span.bytes.firstNotVisible(from: 0) == (isVisible ? 19 : place), "\(octet) at \(place)")
                #expect(bytes.span.bytes.firstControl(from: place + 1) == 19)
                #expect(bytes.span.bytes.isPrintable == (octet >= 0x20 && octet < 0x7F), "\(octet) at \(place)")
            }
        }
    }

    /// Tests all pairs, to detect a borrow or carry from one octet of a word to the next.
    @Test(arguments: 0..<9)
    func printableTextHasNoOtherOctet(place: Int) {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                var bytes: [UInt8] = Array("text of 16 bytes".utf8)
                bytes[place] = first
                bytes[place + 1] = second
                let isPrintable = bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
                guard bytes.span.bytes.isPrintable != isPrintable else { continue }
                Issue.record("\(first) and \(second) at \(place)")
            }
        }
    }

    /// Tests all pairs, to detect a borrow or carry from one octet of a word to the next.
    @Test(arguments: 0..<9)
    func tokenEndsAtTheFirstOtherOctet(place: Int) {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                var bytes: [UInt8] = Array("Content-Lengthzz:".utf8)
                bytes[place] = first
                bytes[place + 1] = second
                let end = bytes.firstIndex { !Octet.isToken($0) } ?? bytes.count
                guard bytes.span.bytes.endOfToken(from: 0) != end else { continue }
                Issue.record("\(first) and \(second) at \(place)")
            }
        }
    }

    @Test func scansFindTheFirstOfSeveral() {
        // 0x20 and 0x80 follow a match, to detect a borrow within the word.
        for (octet, next) in [(0x1F, 0x20), (0x00, 0x20), (0x0D, 0x0A), (0x7F, 0x80), (0x09, 0x7E)] as [(UInt8, UInt8)]
        {
            for place in 0..<16 {
                var bytes = [UInt8](repeating: 0x7E, count: 20)
                bytes[place] = octet
                bytes[place + 1] = next
                bytes[place + 3] = 0x00
                #expect(bytes.span.bytes.firstControl(from: 0) == place)
            }
        }
    }

    @Test(arguments: FieldName.allCases.filter { !$0.isOther })
    func fieldNamesAreRecognisedInAnyCase(name: FieldName) {
        let upper = octets(name.text.uppercased())
        #expect(FieldName(in: octets(name.text).span.bytes, at: 0..<upper.count) == name)
        #expect(FieldName(in: upper.span.bytes, at: 0..<upper.count) == name)
        for place in upper.indices {
            var near = upper
            near[place] ^= 0x40
            #expect(FieldName(in: near.span.bytes, at: 0..<near.count) == .other)
        }
    }
}
