// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignRevocation

struct AddressRuleTests {
    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "192.167.0.1",
        "169.253.0.1", "223.255.255.255", "198.17.0.1", "198.20.0.1", "2606:4700::1111", "2001:4860:4860::8888",
        "::ffff:8.8.8.8", "64:ff9b::808:808",
    ])
    func publicAddressesArePermitted(text: String) throws {
        let bytes = try #require(Addresses.bytes(text))
        #expect(AddressRule(mayBeLocal: false).permits(bytes) && AddressRule(mayBeLocal: true).permits(bytes))
    }

    @Test(arguments: [
        "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
        "127.255.255.254", "169.254.169.254", "::1", "fc00::1", "fdff::1", "fe80::1", "febf::1", "::ffff:127.0.0.1",
        "::ffff:10.1.2.3", "::ffff:169.254.169.254", "64:ff9b::a00:1",
    ])
    func localAddressesNeedAnAnchorOfTheUser(text: String) throws {
        let bytes = try #require(Addresses.bytes(text))
        #expect(!AddressRule(mayBeLocal: false).permits(bytes) && AddressRule(mayBeLocal: true).permits(bytes))
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1",
        "198.51.100.1", "203.0.113.1", "192.0.0.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "::", "::2",
        "::127.0.0.1", "ff02::1", "2001:db8::1", "2001::1", "2002:7f00:1::", "3fff::1", "fec0::1", "4000::1",
        "::ffff:0.0.0.0", "::ffff:224.0.0.1",
    ])
    func otherAddressesAreNeverPermitted(text: String) throws {
        let bytes = try #require(Addresses.bytes(text))
        #expect(!AddressRule(mayBeLocal: false).permits(bytes) && !AddressRule(mayBeLocal: true).permits(bytes))
    }

    @Test func bytesThatAreNoAddressAreNotPermitted() {
        for count in [0, 3, 5, 15, 17] {
            #expect(!AddressRule(mayBeLocal: true).permits([UInt8](repeating: 1, count: count)))
        }
    }
}
