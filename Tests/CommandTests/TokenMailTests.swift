// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// `countersign token xoauth2` and `oauthbearer`, with Dovecot.
@Suite(.waiting) struct TokenMailTests {
    private static let user = "jdoe@corp.example"

    private func imap(_ bench: SignInSandbox, _ server: DovecotServer, _ mechanism: String, _ response: String) throws
        -> CommandResult
    {
        try Command.run(
            try Tool.python(), ["\(Tool.repository)/Tests/TestOrigin/Clients/imap.py", "\(server.port)", mechanism],
            input: response, in: bench.sandbox.folder)
    }

    @Test func dovecotAcceptsBothMechanisms() throws {
        let bench = try TokenTests.signedIn(["token": ["first"]])
        let server = try DovecotServer(token: "first", user: Self.user)
        let standard = try bench.sandbox.succeed(
            "token", "oauthbearer", "work", "--user", Self.user, "--host", "127.0.0.1", "--port", "\(server.port)")
        let bearer = try imap(bench, server, "OAUTHBEARER", standard)
        #expect(bearer.status == 0 && bearer.output == "OK OK\n", "\(bearer.said)\n\(server.log)")
        let other = try imap(
            bench, server, "XOAUTH2", try bench.sandbox.succeed("token", "xoauth2", "work", "--user", Self.user))
        #expect(other.status == 0 && other.output == "OK OK\n", "\(other.said)\n\(server.log)")
        let wrong = SASLResponse.oauthbearer(user: Self.user, host: "127.0.0.1", port: 143, token: "second")
        #expect(try imap(bench, server, "OAUTHBEARER", wrong).status == 1)
    }

    /// RFC 7628 §4.1, and Google's documentation of XOAUTH2.
    @Test func theResponsesAreThoseOfTheirDocuments() {
        #expect(
            SASLResponse.oauthbearer(
                user: "user@example.com", host: "server.example.com", port: 143,
                token: "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==")
                == "bixhPXVzZXJAZXhhbXBsZS5jb20sAWhvc3Q9c2VydmVyLmV4YW1wbGUuY29tAXBvcnQ9MTQzAWF1dGg9QmVhcmVyIHZGOWRmdDRxb"
                + "VRjMk52YjNSbGNrQmhiSFJoZG1semRHRXVZMjl0Q2c9PQEB")
        #expect(
            SASLResponse.xoauth2(
                user: "someuser@example.com", token: "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg")
                == "dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRH"
                + "RXVZMjl0Q2cBAQ==")
    }

    /// A comma or an equals sign would end the name (RFC 5801 §4).
    @Test func aNameWithACommaIsEscaped() throws {
        let text = SASLResponse.oauthbearer(user: "a,b=c", host: "h", port: 1, token: "t")
        let bytes = try #require(Data(base64Encoded: text))
        #expect(
            String(decoding: bytes, as: UTF8.self) == "n,a=a=2Cb=3Dc,\u{1}host=h\u{1}port=1\u{1}auth=Bearer t\u{1}\u{1}"
        )
    }

    @Test(arguments: [
        (["xoauth2", "work"], "--user"), (["xoauth2", "work", "--user", "a\u{1}b"], "control character"),
        (["oauthbearer", "work", "--user", "a", "--host", "a b", "--port", "1"], "\"a b\" is not a host"),
        (["oauthbearer", "work", "--user", "a", "--host", "h", "--port", "0"], "1 to 65535"),
    ])
    func wrongValuesAreUsageErrors(arguments: [String], reason: String) throws {
        let result = try Command.run(
            try Sandbox.executable, ["token"] + arguments, in: try TemporaryFolder("usage"))
        #expect(result.status == 64 && result.output.isEmpty && result.error.contains(reason), "\(result.said)")
    }
}
