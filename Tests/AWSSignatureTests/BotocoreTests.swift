// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignAWSSignature

/// Requests that botocore, which boto3 and the AWS CLI use, signs with placeholders: signed again, they are those that
/// it makes with the real keys.
@Suite(.enabled(if: Botocore.isPossible, "the Python of the tests has no botocore")) struct BotocoreTests {
    private static let count = 400
    private static let seed = 20_150_830

    private struct Request: Decodable {
        let method: String
        let host: String
        let target: String
        let fields: [[String]]
        let content: Data
        /// Access key ID, secret, session token or nothing.
        let keys: [String]
        let authorization: String?
        let presigned: String?
    }

    private static func requests() async throws -> [Request] {
        try await Command.detached {
            let folder = try TemporaryFolder()
            let result = try Command.run(
                try Tool.python(), [Tool.client("aws_requests.py"), "\(seed)", "\(count)"], in: folder)
            return try result.output.split(separator: "\n").map {
                try JSONDecoder().decode(Request.self, from: Data($0.utf8))
            }
        }
    }

    @Test func aRequestSignedAgainIsBotocoresOwn() async throws {
        let requests = try await Self.requests()
        #expect(requests.count == Self.count)
        #expect(requests.contains { $0.presigned != nil } && requests.contains { $0.presigned == nil })
        for request in requests {
            let sent = SignableRequest(
                method: request.method, target: Array(request.target.utf8), host: request.host,
                fields: request.fields.map { SignableRequest.Field($0[0], Array($0[1].utf8)) })
            let client = try #require(try ClientSignature(of: sent), "\(request)")
            #expect(client.accessKeyID == "countersign")
            let keys = try Sample.keys(
                request.keys[0], request.keys[1], token: request.keys[2].isEmpty ? nil : request.keys[2])
            let hash = SignedPayload.hash { update in request.content.withUnsafeBytes { update($0) } }
            let signature = try keys.sign(sent, as: client, contentHash: hash)
            #expect(signature.authorization == request.authorization, "\(request)")
            #expect(Self.parameters(signature.target) == Self.parameters(request.presigned), "\(request)")
            if request.presigned == nil {
                #expect((signature.sessionToken?.utf8Text ?? "") == request.keys[2])
            }
        }
    }

    /// The target's path and its parameters, whose order has no meaning.
    private static func parameters(_ target: String?) -> [Substring]? {
        target.map { target in
            let halves = target.split(separator: "?", maxSplits: 1)
            return [halves[0]] + halves[1].split(separator: "&").sorted()
        }
    }
}

private enum Botocore {
    static let isPossible: Bool = {
        guard let python = try? Tool.python(), let folder = try? TemporaryFolder() else { return false }
        return (try? Command.run(python, ["-c", "import botocore"], in: folder))?.status == 0
    }()
}
