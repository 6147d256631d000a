// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct IPAddressTests {
    @Test(arguments: [
        "127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "0.0.0.0", "0.1.2.3", "::",
        "::ffff:0.0.0.0", "169.254.0.1", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "febf:ffff::",
        // IPv4-compatible, NAT64 and 6to4.
        "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "2002:7f00:1::1", "2002:a9fe:a9fe::",
    ])
    func theseLeadToThisMachineOrItsLink(_ text: String) throws {
        #expect(try #require(IPAddress(text)).isLocal)
    }

    @Test(arguments: [
        "128.0.0.1", "10.0.0.1", "192.168.1.1", "100.64.0.1", "169.253.0.1", "169.255.0.1", "224.0.0.1", "1.0.0.0",
        "::2:0:0:1", "2001:db8::1", "fc00::1", "fec0::1", "ff02::1", "64:ff9b::8.8.8.8", "64:ff9b:1::7f00:1",
        "2002:808:808::1", "::ffff:8.8.8.8",
    ])
    func theseMayBeAnywhere(_ text: String) throws {
        #expect(try !#require(IPAddress(text)).isLocal)
    }

    @Test func aMappedAddressIsTheAddressThatItContains() throws {
        #expect(IPAddress("::ffff:192.0.2.1") == IPAddress("192.0.2.1"))
        #expect(try #require(IPAddress("::ffff:192.0.2.1")).description == "192.0.2.1")
        #expect(try #require(IPAddress("2001:DB8:0::1")).description == "2001:db8::1")
    }

    @Test(arguments: [
        "", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "[::1]", "fe80::1%lo", "127.0.0.1\0",
        "127.0.0.1\0.example", " 127.0.0.1",
    ])
    func nothingElseIsAnAddress(_ text: String) {
        #expect(IPAddress(text) == nil)
    }
}
