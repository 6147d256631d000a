// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// PyPI's `mcp`: a server that requires authorization, and a client that knows nothing of it.
@Suite(.waiting) struct MCPSignInTests {
    @Test func aClientWithoutATokenReachesAServerThatWantsOne() throws {
        let server = try MCPServer()
        let user = try Countersign()
        let browser = try user.folder.write(
            program: "browser",
            "#!/bin/sh\nexec curl -sSLk --noproxy '*' --resolve mcp.test.localhost:\(server.port):127.0.0.1 "
                + "-o /dev/null \"$1\"\n")
        let enrolled = try user.run(
            ["enroll", server.origin + "/mcp", "--yes", "--issuer", server.origin], environment: ["BROWSER": browser])
        #expect(enrolled.status == 0, "\(enrolled.said)")
        #expect(server.requests.allSatisfy { !$0.token }, "the site and its provider got a token before the end")
        let used = try user.run(
            ["exec", "--", try Tool.python(), Tool.client("mcp_client.py"), server.origin + "/mcp"])
        #expect(used.output == "tools add\nsum 42\n", "\(used.said)")
        let calls = server.requests.filter { $0.path == "/mcp" && $0.status == 200 }
        #expect(!calls.isEmpty && calls.allSatisfy { $0.token })
        let ended = try user.run("unenroll", "mcp.test.localhost", "--no-sign-out")
        #expect(ended.status == 0, "\(ended.said)")
    }
}
