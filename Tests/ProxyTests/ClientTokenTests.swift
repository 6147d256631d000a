// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignProxy

@Suite struct ClientTokenTests {
    @Test func theTokenNamesItsClient() {
        let tokens = [("ci", "f1rst"), ("agents", "t0ken"), ("other", "th1rd")].map {
            ClientToken(Secret(utf8: $0.1), name: $0.0)
        }
        #expect(ClientToken.sent(in: ["Basic OnQwa2Vu"], tokens)?.name == "agents")
        #expect(ClientToken.sent(in: ["Bearer f1rst"], tokens)?.name == "ci")
        #expect(ClientToken.sent(in: ["Bearer f1rs"], tokens) == nil)
        #expect(ClientToken.sent(in: ["Bearer f1rst"], []) == nil)
    }

    // printf 'countersign:t0ken' | base64, and so on.
    @Test(arguments: [
        "Basic Y291bnRlcnNpZ246dDBrZW4=", "basic OnQwa2Vu", "BASIC  YW55Ym9keTp0MGtlbg==", "Bearer t0ken",
        "bearer  t0ken",
    ]) func theTokenIsThePasswordOrTheBearer(_ value: String) {
        #expect(Self.isAccepted([value], "t0ken"))
    }

    @Test(arguments: [
        [], ["Bearer t0ke"], ["Bearer t0ken1"], ["Bearer T0KEN"], ["Bearer"], ["Bearer "], ["t0ken"], ["Digest t0ken"],
        ["Basic t0ken"], ["Basic dDBrZW4="], ["Basic !"], ["Basic OnQwa2Vu", "Bearer t0ken"],
        ["Bearer t0ken", "Bearer t0ken"],
    ]) func nothingElseIs(_ values: [String]) {
        #expect(!Self.isAccepted(values, "t0ken"))
    }

    @Test func aTokenMayContainColons() {
        // printf 'u:a:b' | base64
        #expect(Self.isAccepted(["Basic dTphOmI="], "a:b"))
    }

    private static func isAccepted(_ values: [String], _ token: String) -> Bool {
        ClientToken.sent(in: values, [ClientToken(Secret(utf8: token))]) != nil
    }
}
