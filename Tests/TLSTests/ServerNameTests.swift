// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignTLS

struct ServerNameTests {
    /// A ServerNameList with one name of `type`.
    private static func list(_ name: String, type: UInt8 = 0) -> [UInt8] {
        let length = name.utf8.count
        return [UInt8((length + 3) >> 8), UInt8((length + 3) & 0xFF), type, UInt8(length >> 8), UInt8(length & 0xFF)]
            + name.utf8
    }

    @Test(arguments: ["a", "localhost", String(repeating: "a", count: 253)])
    func oneHostNameIsAccepted(name: String) {
        #expect(ServerName(extension: Self.list(name)) == .name(name))
    }

    @Test func anythingElseIsMalformed() {
        let good = Self.list("localhost")
        for length in 0..<good.count {
            #expect(ServerName(extension: Array(good.prefix(length))) == .malformed, "cut at \(length)")
        }
        #expect(ServerName(extension: good + [0]) == .malformed)
        #expect(ServerName(extension: Self.list("localhost", type: 1)) == .malformed)
        #expect(ServerName(extension: Self.list("")) == .malformed)
        for name in ["local host", "local\u{0}host", "localhöst", "local\nhost"] {
            #expect(ServerName(extension: Self.list(name)) == .malformed)
        }
        let two = [0, 8, 0, 0, 1, 0x61, 0, 0, 1, 0x62] as [UInt8]
        #expect(ServerName(extension: two) == .malformed)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("::1", true), ("localhost", false), ("1.example", false), ("example.1a", false),
        ("", false),
    ])
    func addressesAreDistinguishedFromNames(host: String, isAddress: Bool) {
        #expect(isIPAddress(host) == isAddress)
    }
}
