// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `inject=aws`, with boto3 and with moto, which verifies signatures.
@Suite(.waiting) struct AWSTests {
    private static let placeholder = "countersign"

    /// What boto3 says about each of its calls, with this access key ID.
    private static func calls(
        as accessKey: String, of server: AWSServer, _ user: Countersign, _ proxy: RunningProxy
    ) throws -> [String] {
        let done = try Command.run(
            Tool.python(),
            [
                Tool.client("aws_client.py"), "https://localhost:\(server.port)", proxy.url, proxy.anchor, accessKey,
            ], in: user.folder)
        return done.output.split(separator: "\n").map(String.init)
    }

    @Test func requestsAreSignedAgainWithTheEnrolledKeys() throws {
        let server = try AWSServer()
        let user = try Countersign()
        try user.succeed(
            "credential", "set", "aws", "--user", server.keys.id, "--password-stdin", input: server.keys.secret)
        try user.allow("https://localhost:\(server.port) credential=aws inject=aws placeholder=\(Self.placeholder)")
        let proxy = try user.serve()
        #expect(
            try Self.calls(as: Self.placeholder, of: server, user, proxy) == [
                "bucket made", "put put", "get 100000", "list True", "multipart None", "size 9000000", "table made",
                "item put", "read 200000", "who program",
            ])
        // Signed with another key, a request is the client's own.
        let others = try Self.calls(as: "AKIAIOSFODNN7EXAMPLE", of: server, user, proxy)
        #expect(others.count == 10 && !others.contains("who program"), "\(others)")
        let log = TextFile.lines(proxy.accessLog)
        #expect(log.contains { $0.contains("\"challenge\":\"injected\",\"credential\":\"aws\"") })
        #expect(!(log + TextFile.lines(proxy.process.outputPath)).contains { $0.contains(server.keys.secret) })
    }

    /// As `aws configure export-credentials` writes them.
    @Test func keysInOneRecordSignUntilTheyExpire() throws {
        func keys(_ server: AWSServer, until expiration: String) -> String {
            """
            {
              "Version": 1,
              "AccessKeyId": "\(server.keys.id)",
              "SecretAccessKey": "\(server.keys.secret)",
              "Expiration": "\(expiration)"
            }

            """
        }
        let server = try AWSServer()
        let user = try Countersign()
        try user.succeed(
            "credential", "set", "aws", "--aws-stdin", input: keys(server, until: "2100-01-01T00:00:00+00:00"))
        try user.allow("https://localhost:\(server.port) credential=aws inject=aws placeholder=\(Self.placeholder)")
        let proxy = try user.serve()
        let calls = try Self.calls(as: Self.placeholder, of: server, user, proxy)
        #expect(calls.count == 10 && calls.last == "who program", "\(calls)")
        let past = try user.run(
            "credential", "set", "aws", "--aws-stdin", input: keys(server, until: "2020-01-01T00:00:00Z"))
        #expect(past.status == 1 && past.error.contains("the keys have expired at 2020"), "\(past.said)")
        #expect(!past.error.contains(server.keys.secret))
    }

    /// Without a credential, the signature with the placeholder goes out, and the reason is said.
    @Test func aRequestThatCannotBeSignedSaysWhy() throws {
        let server = try AWSServer()
        let user = try Countersign()
        try user.allow("https://localhost:\(server.port) credential=aws inject=aws placeholder=\(Self.placeholder)")
        let proxy = try user.serve()
        let calls = try Self.calls(as: Self.placeholder, of: server, user, proxy)
        #expect(calls.last == "who InvalidClientTokenId", "\(calls)")
        let reasons = try proxy.logged(site: "https://localhost:\(server.port)").compactMap(\.reason)
        #expect(reasons.contains("not injected: no credential \"aws\" is enrolled"), "\(reasons)")
    }
}
