// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// The table of authenticators and the words of the allowed-sites list say the same.
@Suite struct SupportedSchemesTests {
    /// The words that permit something in `table` without being supported, and the supported ones that permit nothing
    /// in it. A certificate answers TLS and not a challenge.
    private static func differences(
        _ table: AuthenticatorTable, _ supported: [AuthenticationScheme] = AuthenticationScheme.supported
    ) -> Set<AuthenticationScheme> {
        Set(table.schemes).symmetricDifference(supported.filter { $0 != .certificate })
    }

    @Test func everySchemeOfTheTableIsAWordOfTheList() {
        #expect(Self.differences(.supported) == [])
    }

    /// Both are strongest first.
    @Test func theTableAndTheListHaveTheSameOrder() {
        let words = AuthenticationScheme.supported.filter { $0 != .certificate }
        #expect(AuthenticatorTable.supported.schemes == words)
        #expect(AuthenticatorTable(AuthenticatorTable.supported.authenticators.reversed()).schemes != words)
    }

    /// The check above finds a scheme that is in one place only.
    @Test func aSchemeInOnePlaceOnlyIsReported() {
        let all = AuthenticatorTable.supported.authenticators
        let fewer = AuthenticatorTable(all.filter { $0.scheme != .bearer })
        #expect(Self.differences(fewer) == [.bearer])
        #expect(Self.differences(.supported, AuthenticationScheme.supported.filter { $0 != .digest }) == [.digest])
        #expect(Self.differences(AuthenticatorTable([])) == [.pkeyauth, .negotiate, .ntlm, .digest, .bearer, .basic])
    }

    /// Two authenticators of one scheme for one challenge: the second would never be used. NTLM inside Negotiate is
    /// used if Kerberos, which has another keyword, fails here.
    @Test(arguments: [
        "NTLM", "Negotiate", "PKeyAuth nonce=n, Context=c, Version=\"1.0\"", "Basic realm=r", "Bearer",
        "Bearer realm=r", "Digest realm=r, nonce=n",
        "Digest realm=r, nonce=n, algorithm=MD5-sess",
        "Digest realm=r, nonce=n, algorithm=SHA-256", "Digest realm=r, nonce=n, algorithm=SHA-512-256, qop=auth",
    ])
    func noTwoAuthenticatorsOfTheTableAnswerTheSameChallenge(field: String) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        let willing = AuthenticatorTable.supported.authenticators.filter {
            challenge.isOf($0.schemeName) && $0.canAnswer(challenge)
        }
        // Without a protection, the server could not learn the client's nonce of a session.
        #expect(willing.count == (field.hasSuffix("MD5-sess") ? 0 : field == "Negotiate" ? 2 : 1))
        #expect(Set(willing.map(\.scheme)).count == willing.count)
    }

    /// RFC 4559 §6: the client may answer NTLM itself, so its connection is its own.
    @Test(arguments: [
        ("Basic realm=\"r\", NTLM", true), ("NTLM", true), ("Basic realm=\"r\", Negotiate", true),
        ("Digest realm=\"NTLM, Negotiate\", nonce=n", false), ("Basic realm=\"r\"", false),
        ("NTLM, Basic realm=\"", true), ("Basic realm=\", NTLM", true), ("Basic realm=\"r\" oops, NTLM", true),
    ])
    func aConnectionBoundSchemeIsFoundAnywhereInAField(field: String, isOffered: Bool) throws {
        #expect(AuthenticatorTable.supported.offersConnectionBoundScheme(in: [ChallengeField(field)]) == isOffered)
        let bench = try Bench(sites: "http://other.example", password: "pw")
        let origin = try bench.idleOrigin(withCredential: false)
        try bench.send("GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n")
        _ = try origin.sent()
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(field)\r\nContent-Length: 0\r\n\r\n")
        let answer = try bench.answer()
        #expect(answer.contains("\r\nWWW-Authenticate: \(field)\r\n"))
        #expect(answer.contains("\r\nProxy-Support: Session-Based-Authentication\r\n") == isOffered)
    }
}
