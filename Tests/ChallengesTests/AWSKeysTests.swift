// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// What a `credential_process` of AWS' tools writes.
@Suite struct AWSKeysTests {
    private static func read(_ text: String) throws -> AWSKeys { try AWSKeys(processOutput: Secret(utf8: text)) }

    @Test func theKeysAreRead() throws {
        // As `aws configure export-credentials` writes them.
        let keys = try Self.read(
            """
            {
              "Version": 1,
              "AccessKeyId": "ASIAIOSFODNN7EXAMPLE",
              "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
              "SessionToken": "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJ==",
              "Expiration": "2026-11-29T05:00:00+00:00",
              "AccountId": "123456789012"
            }

            """)
        #expect(keys.accessKeyID == "ASIAIOSFODNN7EXAMPLE")
        #expect(keys.secret == Secret(utf8: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
        #expect(keys.sessionToken == Secret(utf8: "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJ=="))
        let expires = try #require(WallClock.seconds(rfc3339: "2026-11-29T05:00:00Z"))
        #expect(keys.expires == expires && keys.haveExpired(at: expires) && !keys.haveExpired(at: expires - 1))
    }

    @Test func keysOfAUserDoNotExpire() throws {
        for rest in ["", #", "SessionToken": null, "Expiration": null"#] {
            let keys = try Self.read(#"{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"canary"\#(rest)}"#)
            #expect(keys.sessionToken == nil && keys.expires == nil && !keys.haveExpired(at: .max))
        }
    }

    @Test(arguments: [
        ("", "line 1, column 1"), ("canary-secret", "line 1, column 1"), ("[]", "the keys must be an object"),
        (#"{"AccessKeyId":"A","SecretAccessKey":"canary"}"#, #""Version" must be 1"#),
        (#"{"Version":2,"AccessKeyId":"A","SecretAccessKey":"canary"}"#, #"column 12: "Version" must be 1"#),
        (#"{"Version":1,"SecretAccessKey":"canary"}"#, #""AccessKeyId""#),
        (#"{"Version":1,"AccessKeyId":"A"}"#, #""SecretAccessKey" is missing"#),
        (#"{"Version":1,"AccessKeyId":1,"SecretAccessKey":"canary"}"#, "a string"),
        (#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":7}"#, "a string"),
        (#"{"Version":1,"AccessKeyId":"A/B","SecretAccessKey":"canary"}"#, "the access key ID is not one"),
        (#"{"Version":1,"AccessKeyId":"","SecretAccessKey":"canary"}"#, "the access key ID is not one"),
        (#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":""}"#, "the secret access key is empty"),
        (#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary\n"}"#, "the secret access key is empty"),
        (
            #"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary","SessionToken":"can ary"}"#,
            "the session token is empty"
        ),
        (
            #"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary","Expiration":"tomorrow"}"#,
            #""Expiration" must be a time"#
        ),
        (
            #"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary","Expiration":1800000000}"#, "a string"
        ),
        (#"{"Version":1,"AccessKeyId":"A","AccessKeyId":"B","SecretAccessKey":"canary"}"#, "AccessKeyId"),
        (#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary"} x"#, "line 1"),
    ]) func anotherTextIsRefused(text: String, reason: String) {
        let fault = #expect(throws: AWSKeys.Fault.self) { try Self.read(text) }
        #expect(fault?.detail.contains(reason) == true, "\(fault?.detail ?? "")")
        #expect(fault?.detail.hasPrefix("not the JSON of AWS' credential_process: ") == true)
        #expect(fault?.detail.contains("canary") == false)
    }

    @Test func keysAreNoPassword() throws {
        let credential = EnrolledCredential.aws(
            AWSCredential(
                name: "aws",
                keys: try Self.read(#"{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"canary"}"#), generation: 1))
        #expect(AuthenticationScheme.supported.allSatisfy { !$0.uses(credential) })
        #expect(throws: AuthenticationError.self) { try credential.password(for: "Basic") }
        #expect(throws: AuthenticationError.self) { try credential.token(for: "Bearer") }
    }
}
