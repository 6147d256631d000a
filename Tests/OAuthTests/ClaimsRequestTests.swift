// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Testing

@testable import CountersignOAuth

@Suite struct ClaimsRequestTests {
    private func merged(_ first: String?, _ second: String?) throws -> String? {
        func value(_ text: String?) throws -> JSONValue? { try text.map { try JSONParser.parse(Array($0.utf8)) } }
        return ClaimsRequest.merged(try value(first), with: try value(second))?.serialized
    }

    @Test func theCapabilityIsTheDocumentedClaim() {
        #expect(ClaimsRequest.protection.serialized == #"{"access_token":{"xms_cc":{"values":["protapp"]}}}"#)
    }

    @Test(arguments: [
        (nil, nil, nil), ("{}", nil, "{}"), (nil, #"{"a":1}"#, #"{"a":1}"#),
        (
            #"{"a":{"b":[1,2]},"c":null}"#, #"{"a":{"b":[2,3],"d":null},"c":{"essential":true}}"#,
            #"{"a":{"b":[1,2,3],"d":null},"c":{"essential":true}}"#
        ),
        (#"{"c":{"essential":true}}"#, #"{"c":null}"#, #"{"c":{"essential":true}}"#),
        (#"{"v":{"value":"old"}}"#, #"{"v":{"value":"new"}}"#, #"{"v":{"value":"new"}}"#),
        (#"{"x":{"v":["ProtApp","cp1"]}}"#, #"{"x":{"v":["protapp"]}}"#, #"{"x":{"v":["ProtApp","cp1"]}}"#),
    ])
    func nothingIsLostAndNothingDoubled(first: String?, second: String?, result: String?) throws {
        #expect(try merged(first, second) == result)
    }

    @Test func aChallengeIsAddedToTheCapability() throws {
        let request = try SignInRequest(client: Client("c"), scopes: []).adding(claims: ClaimsRequest.protection)
        let challenge = #"{"access_token":{"acrs":{"essential":true,"value":"c1"}}}"#
        let once = request.adding(challenge: challenge)
        #expect(
            once.claims?.serialized
                == #"{"access_token":{"xms_cc":{"values":["protapp"]},"acrs":{"essential":true,"value":"c1"}}}"#)
        #expect(once.adding(challenge: challenge) == once)
        #expect(try once.adding(claims: ClaimsRequest.protection) == once)
        for broken in ["", "[]", "{", "null"] { #expect(once.adding(challenge: broken) == once) }
    }
}
