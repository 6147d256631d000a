// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// A request of these tests.
struct SampleRequest: RequestDescription {
    var method = "GET"
    var target = "/dir/index.html"
    var content: [UInt8]? = []

    func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard let content else { return false }
        // In two pieces.
        content.prefix(content.count / 2).withUnsafeBytes(body)
        content.dropFirst(content.count / 2).withUnsafeBytes(body)
        return true
    }
}

/// The computed values: against those of the RFCs, and against those of Python's hashlib.
@Suite struct DigestTests {
    /// The answer's parameters.
    private static func answer(
        _ field: String, user: String, password: String, clientNonce: String = "", domain: String? = nil,
        charset: CredentialCharset = .utf8, request: SampleRequest = SampleRequest()
    ) throws -> Challenge {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        let signer = try Self.signer(challenge, user: user, password: password, domain: domain, charset: charset)
        return try #require(signer.field(for: request, newClientNonce: Array(clientNonce.utf8))?.parsed)
    }

    private static func signer(
        _ challenge: Challenge, user: String = "jdoe", password: String = "secret", domain: String? = nil,
        charset: CredentialCharset = .utf8
    ) throws -> DigestSigner {
        let credential = PasswordCredential(name: "e", user: user, password: Secret(utf8: password), generation: 1)
        let asked = try #require(DigestChallenge(challenge))
        return DigestSigner(
            asked, try DigestSecret(of: credential, domain: domain, asked, charset.required(by: challenge)))
    }

    @Test(arguments: [
        ("Digest realm=x, nonce=y, algorithm=SHA-512", "with algorithm SHA-512"),
        ("Digest realm=x, nonce=y, qop=other", "with qop other"),
        ("Digest nonce=y", "without a realm"),
        ("Digest realm=x", "without a nonce"),
        ("Digest realm=x, nonce=y, qop=auth, opaque=\"a\"b\"", "with a fault"),
        ("Digest realm=x, nonce=y, qop=auth, algorithm=MD5, opaque=\"a\"b\"", nil),
        ("Digest realm=x, nonce=y, algorithm=\"A\u{C4}\"", "with algorithm A?"),
        ("Digest realm=x, nonce=y, algorithm=MD5", nil),
    ])
    func aChallengeThatCannotBeAnsweredIsExplained(field: String, reason: String?) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        let table = AuthenticatorTable(DigestAuthenticator.strongestFirst)
        #expect(table.shortcoming(of: challenge) == reason)
    }

    /// RFC 7616 §3.9.1.
    @Test(arguments: [
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ])
    func theFirstExampleOfRFC7616(algorithm: String, response: String) throws {
        let answer = try Self.answer(
            """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", \
            opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """, user: "Mufasa", password: "Circle of Life",
            clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(
            answer.parameters == [
                AuthParameter("username", "Mufasa"), AuthParameter("realm", "http-auth@example.org"),
                AuthParameter("nonce", "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"),
                AuthParameter("uri", "/dir/index.html"), AuthParameter("response", response),
                AuthParameter("qop", "auth"), AuthParameter("nc", "00000001"),
                AuthParameter("cnonce", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"),
                AuthParameter("algorithm", algorithm),
                AuthParameter("opaque", "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"),
            ])
    }

    /// RFC 7616 §3.9.2, with the values of its erratum 4897.
    @Test func theSecondExampleOfRFC7616() throws {
        let answer = try Self.answer(
            """
            Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", \
            opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true
            """, user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?",
            clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", request: SampleRequest(target: "/doe.json"))
        #expect(answer.parameter("userhash") == "true")
        #expect(
            answer.parameter("username") == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(
            answer.parameter("response") == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5")
    }

    /// RFC 2617 §3.5, and RFC 2069 §2.4 with the corrected value of its erratum 749.
    @Test(arguments: [
        (", qop=\"auth,auth-int\"", "Circle Of Life", "6629fae49393a05397450978507c4ef1"),
        ("", "CircleOfLife", "1949323746fe6a43ef61f9606e7febea"),
    ])
    func theExamplesOfTheEarlierRFCs(protection: String, password: String, response: String) throws {
        let answer = try Self.answer(
            """
            Digest realm="testrealm@host.com"\(protection), nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
            opaque="5ccc069c403ebaf9f0171e9517f40e41"
            """, user: "Mufasa", password: password, clientNonce: "0a4f113b")
        #expect(answer.parameter("response") == response)
        #expect(answer.parameter("algorithm") == nil)
        #expect((answer.parameter("nc") == nil) == protection.isEmpty)
        #expect((answer.parameter("cnonce") == nil) == protection.isEmpty)
    }

    /// From Python's hashlib.
    @Test(arguments: [
        ("MD5-sess", "auth", "4df4dcf9b27fe82bedcad9946df10f1d"),
        ("SHA-256-sess", "auth", "3c048e10f31557d836a6aebeee308446a3ea4d001ee848dc9cb61cb94cbaac91"),
        ("SHA-256", "auth-int", "184544826672a11f116e4990a2e271148482746d66163cbe48b7de1e6cfe66fb"),
        ("SHA-512-256-sess", "auth-int", "d77fb83e5a7223bebf6fa91b0ce8db971a38498457c92fddb6f743b4f2d174f5"),
    ])
    func sessionsAndContentAreHashed(algorithm: String, protection: String, response: String) throws {
        let answer = try Self.answer(
            "Digest realm=\"r\", nonce=\"n\", qop=\"\(protection)\", algorithm=\(algorithm)", user: "jdoe",
            password: "secret", clientNonce: "c",
            request: SampleRequest(method: "POST", target: "/a?b=c", content: Array("the content".utf8)))
        #expect(answer.parameter("response") == response)
        #expect(answer.parameter("qop") == protection)
    }

    @Test(arguments: [
        ("jdoe", nil, "", "username", "jdoe"), ("jdoe", "ACME", "", "username", "ACME\\jdoe"),
        ("j\u{F6}rg", nil, "", "username", "j\u{F6}rg"),
        ("jo\u{308}rg", nil, ", charset=UTF-8", "username*", "UTF-8''j%C3%B6rg"),
        ("a\"b", nil, "", "username", "a\"b"),
    ])
    func theUserIsNamed(user: String, domain: String?, more: String, name: String, value: String) throws {
        let answer = try Self.answer(
            "Digest realm=\"r\", nonce=\"n\", qop=auth\(more)", user: user, password: "secret", domain: domain)
        #expect(answer.parameter(name) == value)
        #expect(answer.parameters.filter { $0.name.hasPrefix("username") }.count == 1)
    }

    /// From Python's hashlib.
    @Test(arguments: [
        (CredentialCharset.utf8, "", "5a2e3259607d903e20335cd792597604"),
        (.latin1, "", "85af06ad15258a12d7f86ef7ff8fad68"),
        (.latin1, ", charset=UTF-8", "5a2e3259607d903e20335cd792597604"),
    ])
    func thePasswordIsEncodedAsTheChallengeOrTheLineSays(
        charset: CredentialCharset, more: String, response: String
    ) throws {
        let answer = try Self.answer(
            "Digest realm=\"r\", nonce=\"n\", qop=auth\(more)", user: "j\u{F6}rg", password: "geheim\u{DF}",
            clientNonce: "c", charset: charset)
        #expect(answer.parameter("response") == response)
    }

    @Test(arguments: [
        "Digest realm=\"r\"", "Digest nonce=\"n\"", "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-1",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth-conf\"",
        "Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess", "Digest realm=\"\u{FFFD}\", nonce=\"n\"",
        "Basic realm=\"r\", nonce=\"n\"", "Digest realm=\"r\", nonce=\"n\", algorithm=\"\"",
    ])
    func aChallengeThatCannotBeAnsweredIsRecognised(field: String) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        #expect(DigestChallenge(challenge) == nil)
        #expect(DigestAuthenticator.strongestFirst.allSatisfy { !$0.canAnswer(challenge) })
    }

    /// As in a library restricted to FIPS 140.
    @Test func withoutMD5TheChallengeIsNotAnsweredWithIt() throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth"]).first)
        let credential = EnrolledCredential.password(
            PasswordCredential(name: "e", user: "jdoe", password: Secret(utf8: "secret"), generation: 1))
        let context = RequestContext.site(permitted: [.digest])
        let authenticator = DigestAuthenticator(.md5, isAvailable: false)
        let reason = "Digest with MD5 needs MD5, which OpenSSL does not offer here"
        #expect(authenticator.obstacle(to: credential, context) == reason)
        let error = #expect(throws: AuthenticationError.self) {
            try authenticator.reply(to: challenge, with: credential, context)
        }
        #expect(error?.code == .unsupportedChallenge)
        #expect(error?.detail == reason)
    }

    @Test func contentThatIsNotAvailableIsNotHashed() throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth-int"]).first)
        let signer = try Self.signer(challenge)
        #expect(signer.field(for: SampleRequest(content: nil), newClientNonce: []) == nil)
        #expect(signer.needsContent)
    }

    /// RFC 7616 §3.4: no count is used twice with one nonce, by however many threads.
    @Test func concurrentRequestsHaveDifferentCounts() async throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth"]).first)
        let signer = try Self.signer(challenge)
        let counts = await withTaskGroup(of: [String].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<200).compactMap { _ in
                        signer.field(for: SampleRequest(), newClientNonce: [0x63])?.parameter("nc")
                    }
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(counts).count == 1600)
        #expect(counts.max() == "00000640")
    }

    /// A late response announces a nonce that others have used already.
    @Test func anOlderNonceDoesNotComeBack() throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth"]).first)
        let signer = try Self.signer(challenge)
        func sent() -> [String?] {
            let field = signer.field(for: SampleRequest(), newClientNonce: [0x63])
            return [field?.parameter("nonce"), field?.parameter("nc")]
        }
        #expect(sent() == ["n", "00000001"])
        signer.use("m", after: "n")
        #expect(sent() == ["m", "00000001"])
        signer.use("l", after: "n")
        signer.use("m", after: "m")
        #expect(sent() == ["m", "00000002"])
    }

    /// With an algorithm per session, `nextnonce` does not end the session.
    @Test func aSessionKeepsItsNonces() throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth, algorithm=MD5-sess"]).first)
        let signer = try Self.signer(challenge)
        _ = signer.field(for: SampleRequest(), newClientNonce: Array("first".utf8))
        signer.use("other", after: "n")
        let second = try #require(signer.field(for: SampleRequest(), newClientNonce: Array("second".utf8))?.parsed)
        #expect(second.parameter("cnonce") == "first")
        #expect(second.parameter("nonce") == "n")
        #expect(second.parameter("nc") == "00000002")
    }

    @Test func noDescriptionShowsTheSecret() throws {
        let challenge = try #require(
            try ChallengeParser.parse(fields: ["Digest realm=\"r\", nonce=\"n\", qop=auth"]).first)
        let signer = try Self.signer(challenge)
        var dumped = ""
        dump(ExchangeMachine.Action.send(.perRequest(signer)), to: &dumped)
        let digits = signer.secret.digits.utf8Text ?? ""
        #expect(digits.count == 32)
        for text in [dumped, "\(signer)", String(reflecting: signer)] { #expect(!text.contains(digits)) }
    }
}
