// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Names that lead to this machine, with a real resolver and a name server of a stranger.
@Suite(.waiting) struct LocalNamesTests {
    @Test func strangersNamesDoNotLeadHere() throws {
        let folder = try TemporaryFolder()
        let result = try Command.run(
            try Tool.path("unshare"),
            ["-rnm", Tool.client("rebinding.sh"), try Countersign.executable, folder.path], in: folder)
        let refused = [
            "127-0-0-1", "0-0-0-0", "169-254-169-254", "xx1", "xx", "xxffffx7f00x1", "xxffffx127-0-0-1",
        ].flatMap { name in
            ["", " (tunnel)"].map { "\(name).evil.corp.invalid\($0): 403 destination_ip_prohibited" }
        }
        // The other address is used; there is no route to it.
        let other = ["", " (tunnel)"].map { "127-0-0-1and192-0-2-1.evil.corp.invalid\($0): 502 " }
        let permitted = [
            "127.0.0.1", "[::1]", "localhost", "a.localhost", "dev.corp.invalid", "127-0-0-1.evil.corp.invalid",
        ].flatMap { name in ["", " (tunnel)"].map { "\(name)\($0): 200 secret" } }
        #expect(result.output.split(separator: "\n").map(String.init) == refused + other + permitted, "\(result.said)")
    }
}
