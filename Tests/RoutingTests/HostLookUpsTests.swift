// SPDX-License-Identifier: Apache-2.0
import CountersignPAC
import Testing

@testable import CountersignRouting

@Suite struct HostLookUpsTests {
    private func addresses(of name: String) async -> [String] {
        await withCheckedContinuation { continuation in
            HostLookUps.resolve(.name(name)) { continuation.resume(returning: $0) }
        }
    }

    /// The system's resolver would look up the part before it.
    @Test(arguments: ["localhost\0", "localhost\0.corp.example", "\0localhost", "127.0.0.1\0x"])
    func aNameWithANULHasNoAddress(name: String) async {
        #expect(await addresses(of: name) == [])
    }

    @Test func aNameWithoutOneHasItsAddresses() async {
        #expect(await addresses(of: "localhost").contains { $0 == "127.0.0.1" || $0 == "::1" })
    }
}
