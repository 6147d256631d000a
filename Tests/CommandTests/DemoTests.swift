// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// The demo in a home that already has entries.
struct DemoTests {
    @Test func demoDoesNotReplaceAnExistingCredential() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("credential", "set", "demo", "--user", "jdoe", "--password-stdin", input: "canary\n")
        let listed = try sandbox.succeed("credential", "list")
        let refused = try sandbox.countersign("demo")
        #expect(
            refused.status == 1 && refused.error.contains("an entry named \"demo\""), "\(refused.said)")
        #expect(try sandbox.succeed("credential", "list") == listed)
    }
}
