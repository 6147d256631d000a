// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct HostTextTests {
    @Test(arguments: [
        ("a.example", "a.example"), ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ]) func onlyAnIPv6AddressGetsBrackets(_ host: String, _ written: String) {
        #expect(HostText.bracketed(host) == written)
        #expect(HostText.joined(host, 443) == "\(written):443")
    }

    @Test(arguments: [
        "localhost", "a.localhost", "127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
    ])
    func theseAreThisMachine(_ host: String) {
        #expect(HostText.isLoopback(host))
    }

    @Test(arguments: [
        "localhost.example", "nolocalhost", "127.example", "127.0.0.1.example", "128.0.0.1", "::2", "1::1", "[::1]", "",
        "127.0.0.1\0.example",
    ]) func theseAreNot(_ host: String) {
        #expect(!HostText.isLoopback(host))
    }

    @Test func theUnspecifiedAddressIsNotALoopbackAddress() {
        #expect(!HostText.isLoopbackAddress("0.0.0.0") && !HostText.isLoopbackAddress("::"))
    }
}
