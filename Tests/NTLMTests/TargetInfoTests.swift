// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignNTLM

@Suite struct TargetInfoTests {
    @Test func theSpecificationsPairsAreReadAndWritten() throws {
        let info = try TargetInfo(parsing: SpecVectors.targetInfo)
        #expect(info.pairs == [AVPair(.nbDomainName, text: "Domain"), AVPair(.nbComputerName, text: "Server")])
        #expect(try info.serialized() == SpecVectors.targetInfo)
    }

    @Test(arguments: [
        ("half a header", "000000"), ("half a header more", "0100 0200 4100 0000"),
        ("end with a value", "0000 0100 00"),
        ("overrun by one", "0100 0300 4100"), ("overrun by 64 KiB", "0100 ffff 4100 00000000"),
        ("value swallows the end", "0100 0700 4100 00000000"), ("odd text", "0100 0100 41 00000000"),
        ("short flags", "0600 0300 020000 00000000"), ("long flags", "0600 0500 0200000000 00000000"),
        ("short time", "0700 0700 00000000000000 00000000"), ("no time", "0700 0000 00000000"),
        ("short bindings", "0a00 0f00 000000000000000000000000000000 00000000"),
    ])
    func malformedPairsAreRefused(fault: String, digits: String) {
        #expect(throws: NTLMError(.malformed, ""), "\(fault)") { try TargetInfo(parsing: hex(digits)) }
    }

    /// Mistakes of servers on which no client depends.
    @Test(arguments: [
        ("no pairs and no end", "", ""), ("no end", "0100 0200 4100", "0100 0200 4100"),
        ("bytes behind the end", "00000000 00", ""), ("a second end", "00000000 00000000", ""),
        ("pairs behind the end", "0100 0200 4100 00000000 0200 0200 4200", "0100 0200 4100"),
        ("value swallows the end", "0100 0600 4100 00000000", "0100 0600 4100 00000000"),
        ("twice", "0100 0200 4100 0100 0200 4200 00000000", "0100 0200 4100"),
        ("unknown pair twice", "2a00 0000 2a00 0100 ff 00000000", "2a00 0000"),
        ("time twice", "0700 0800 0100000000000000 0700 0800 0200000000000000", "0700 0800 0100000000000000"),
    ])
    func pairsAreReadAsFarAsTheyGo(fault: String, digits: String, read: String) throws {
        #expect(try TargetInfo(parsing: hex(digits)).serialized() == hex(read) + [0, 0, 0, 0], "\(fault)")
    }

    /// A client's pairs are part of a longer response.
    @Test(arguments: ["", "0100 0200 4100", "0100 0200 4100 0100 0200 4200 00000000"])
    func aClientsPairsAreReadStrictly(digits: String) {
        var rest = hex(digits)[...]
        #expect(throws: NTLMError(.malformed, "")) { try TargetInfo(takingFrom: &rest) }
    }

    @Test(arguments: [
        "00000000", "0100 0000 00000000", "2a00 0100 ff 00000000", "0800 0300 010203 00000000",
        "0600 0400 02000000 0700 0800 0102030405060708 00000000",
    ])
    func wellFormedPairsComeBack(digits: String) throws {
        #expect(try TargetInfo(parsing: hex(digits)).serialized() == hex(digits))
    }

    @Test func timeAndFlagsAreLittleEndian() throws {
        let info = try TargetInfo(parsing: hex("0600 0400 01000080 0700 0800 0102030405060708 00000000"))
        #expect(info.timestamp == 0x0807_0605_0403_0201)
        #expect(info.flags == 0x8000_0001)
        #expect(TargetInfo().timestamp == nil)
        #expect(TargetInfo().flags == 0)
    }

    @Test func theAnswerKeepsTheServersPairsAndReplacesTheClientsOwn() throws {
        var info = try TargetInfo(parsing: SpecVectors.targetInfo)
        info[.flags] = [1, 0, 0, 0]
        info[.targetName] = UTF16Text.encode("HTTP/elsewhere")
        info[.channelBindings] = [UInt8](repeating: 9, count: 16)
        let bindings = [UInt8](repeating: 7, count: 16)
        let answer = info.answered(channelBindings: bindings, servicePrincipalName: "HTTP/www.example")
        #expect(
            answer.pairs == [
                AVPair(.nbDomainName, text: "Domain"), AVPair(.nbComputerName, text: "Server"),
                AVPair(.flags, [3, 0, 0, 0]),
                AVPair(.targetName, text: "HTTP/www.example"), AVPair(.channelBindings, bindings),
            ])
    }

    @Test func settingNilTakesThePairAway() {
        var info = TargetInfo([AVPair(.timestamp, [UInt8](repeating: 0, count: 8))])
        info[.timestamp] = nil
        info[.flags] = nil
        #expect(info.pairs == [])
    }

    @Test func aValueHasAtMost65535Bytes() throws {
        let longest = TargetInfo([AVPair(.singleHost, [UInt8](repeating: 0, count: 65_535))])
        #expect(try longest.serialized().count == 4 + 65_535 + 4)
        let tooLong = TargetInfo([AVPair(.singleHost, [UInt8](repeating: 0, count: 65_536))])
        #expect(throws: NTLMError(.unusableCredential, "")) { try tooLong.serialized() }
    }
}
