// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

@Suite struct BasicAuthenticatorTests {
    private static let plain = Challenge(scheme: "Basic", parameters: [AuthParameter("realm", "x")])
    private static let utf8 = Challenge(
        scheme: "Basic", parameters: [AuthParameter("realm", "x"), AuthParameter("charset", "utf-8")])

    private static func credential(_ user: String, _ password: String) -> PasswordCredential {
        PasswordCredential(name: "enrollment", user: user, password: Secret(utf8: password), generation: 1)
    }

    /// The first value is from RFC 7617 §2, the second from §2.1; the others were computed with `printf | iconv |
    /// base64`.
    @Test(arguments: [
        ("Aladdin", "open sesame", CredentialCharset.utf8, plain, "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("test", "123\u{A3}", .utf8, utf8, "dGVzdDoxMjPCow=="),
        ("test", "123\u{A3}", .utf8, plain, "dGVzdDoxMjPCow=="),
        ("test", "123\u{A3}", .latin1, plain, "dGVzdDoxMjOj"),
        ("test", "123\u{A3}", .latin1, utf8, "dGVzdDoxMjPCow=="),
        ("test", "e\u{301}", .latin1, plain, "dGVzdDrp"),
        ("test", "e\u{301}", .utf8, plain, "dGVzdDrDqQ=="),
        ("\u{E9}", "\u{20AC}", .utf8, plain, "w6k64oKs"),
        ("", "", .utf8, plain, "Og=="),
        ("u", "a:b", .utf8, plain, "dTphOmI="),
    ])
    func userAndPasswordAreEncodedAsTheChallengeOrTheLineSays(
        user: String, password: String, charset: CredentialCharset, challenge: Challenge, expected: String
    ) throws {
        let authorization = try BasicAuthenticator.field(
            for: Self.credential(user, password), domain: nil, charset: charset, challenge: challenge)
        #expect(authorization.fieldValue == "Basic \(expected)")
    }

    @Test(arguments: [("test", "\u{20AC}"), ("\u{20AC}", "test"), ("\u{20AC}", "\u{E9}")])
    func textThatLatin1LacksIsRefusedWhereTheLineDemandsIt(user: String, password: String) {
        let error = #expect(throws: AuthenticationError.self) {
            try BasicAuthenticator.field(
                for: Self.credential(user, password), domain: nil, charset: .latin1, challenge: Self.plain)
        }
        #expect(
            error?.detail
                == "the user name or the password cannot be written in ISO 8859-1 (charset=latin1)")
    }

    @Test(arguments: [
        ("jdoe", "ACME", "ACME\\jdoe:p"), ("jdoe", nil, "jdoe:p"), ("jdoe", "", "jdoe:p"),
        ("OTHER\\jdoe", "ACME", "OTHER\\jdoe:p"), ("jdoe@acme.example", "ACME", "jdoe@acme.example:p"),
    ])
    func domainGoesBeforeABareUser(user: String, domain: String?, expected: String) throws {
        let authorization = try BasicAuthenticator.field(
            for: Self.credential(user, "p"), domain: domain, challenge: Self.plain)
        #expect(authorization.fieldValue == "Basic \(Base64.encode(Array(expected.utf8)))")
    }

    @Test(arguments: [
        ("a:b", "p", nil, "the user name contains a colon"), ("jdoe", "p", "A:B", "the user name contains a colon"),
        ("a\u{0}", "p", nil, "the user name contains a control character"),
        ("a\r\nX: y", "p", nil, "the user name contains a colon"),
        ("a\u{7F}", "p", nil, "the user name contains a control character"),
        ("a", "p\n", nil, "the password contains a control character"),
        ("a", "p\r\n", nil, "the password contains a control character"),
        ("a", "p\u{85}", nil, "the password contains a control character"),
    ])
    func whatBasicCannotCarryIsRefused(user: String, password: String, domain: String?, detail: String) {
        let error = #expect(throws: AuthenticationError.self) {
            try BasicAuthenticator.field(
                for: Self.credential(user, password), domain: domain, challenge: Self.plain)
        }
        #expect(error?.code == .unusableCredential)
        #expect(error?.detail == detail)
    }

    @Test func passwordThatIsNoTextIsRefused() {
        let credential = PasswordCredential(name: "e", user: "u", password: Secret([0xFF, 0xFE]), generation: 1)
        #expect(throws: AuthenticationError(.unusableCredential, "")) {
            try BasicAuthenticator.field(for: credential, domain: nil, challenge: Self.plain)
        }
    }

    @Test func noDescriptionShowsTheAnswer() throws {
        let authorization = try BasicAuthenticator.field(
            for: Self.credential("jdoe", "correct horse"), domain: nil, challenge: Self.plain)
        var dumped = ""
        dump(ExchangeMachine.Action.send(.fixed(authorization)), to: &dumped)
        for text in [dumped, "\(authorization)", String(reflecting: authorization), "\([authorization])"] {
            #expect(text.contains("Basic"))
            #expect(!text.contains("horse"))
            #expect(!text.contains(Base64.encode(Array("jdoe:correct horse".utf8)).prefix(8)))
        }
    }

    @Test func answersAreEqualWhenTheirBytesAre() {
        let answer = AuthorizationField(scheme: "NTLM", credentials: [1, 2, 3])
        #expect(answer == AuthorizationField(scheme: "NTLM", credentials: [1, 2, 3]))
        #expect(answer != AuthorizationField(scheme: "NTLM", credentials: [1, 2, 4]))
        #expect(answer != AuthorizationField(scheme: "Negotiate", credentials: [1, 2, 3]))
        #expect(answer.fieldValue == "NTLM AQID")
    }

    /// So that a password which answers at many sites is in memory twice, and not once for each of them.
    @Test func whatIsComputedFromACredentialExistsOnce() {
        let derived = DerivedSecrets()
        let first = derived.shared(Secret(utf8: "dXNlcjpwYXNz"))
        #expect(derived.shared(Secret(utf8: "dXNlcjpwYXNz")) === first)
        #expect(derived.shared(Secret(utf8: "dXNlcjpwYXNzMg==")) !== first)
    }
}
