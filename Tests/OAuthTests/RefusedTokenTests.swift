// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Bearer tokens that a provider issues in place of bound ones (RFC 9449 §5) are refused, and the caller gets them to
/// revoke.
@Suite struct RefusedTokenTests {
    private static func wanted() throws -> SignInRequest {
        var wanted = try Sample.wanted(scopes: ["api"])
        wanted.proofKey = ES256Key.random()
        return wanted
    }

    private static let tokens = Sample.tokens(#","refresh_token":"refresh-new""#)

    @Test func theTokensOfACodeAreRevoked() throws {
        var signIn = try Sample.redeeming(try Self.wanted())
        #expect(signIn.received(Self.tokens, now: Sample.now).error?.code == .unsupportedProvider)
        #expect(signIn.tokensToRevoke?.accessToken.utf8Text == "access-new")
        #expect(signIn.tokensToRevoke?.refreshToken?.utf8Text == "refresh-new")
    }

    @Test func soAreThoseOfADevice() throws {
        var (signIn, _) = try Sample.begun(by: .device, try Self.wanted())
        let code = #"{"device_code":"d","user_code":"U","verification_uri":"https://a.example","expires_in":600}"#
        _ = signIn.received(Sample.outcome(200, code), now: Sample.now)
        _ = signIn.waited(now: Sample.now + 5)
        #expect(signIn.received(Self.tokens, now: Sample.now).error?.code == .unsupportedProvider)
        #expect(signIn.tokensToRevoke?.accessToken.utf8Text == "access-new")
    }

    @Test func andThoseOfAMachine() throws {
        var machine = MachineSignIn(
            issuer: try Issuer(Sample.issuer), try Self.wanted(), by: .clientCredentials, with: nil,
            metadata: try Sample.metadata())
        _ = machine.start()
        guard case .fail(let error) = machine.received(Self.tokens, now: Sample.now) else { throw Unexpected("no end") }
        #expect(error.code == .unsupportedProvider)
        #expect(machine.tokensToRevoke?.accessToken.utf8Text == "access-new")
    }

    /// The refresh token is still that of the sign-in.
    @Test func aRefreshRevokesTheAccessTokenAlone() throws {
        var refresh = try Sample.refreshing(try Self.wanted())
        #expect(refresh.received(Self.tokens, now: Sample.now).stored?.refreshToken?.utf8Text == "refresh-new")
        #expect(refresh.stored().error?.code == .unsupportedProvider)
        let tokens = try #require(refresh.tokensToRevoke)
        #expect(tokens.accessToken.utf8Text == "access-new" && tokens.refreshToken == nil)
    }

    @Test(arguments: [
        #"{"error":"invalid_grant","access_token":"a"}"#, #"{"token_type":"Bearer"}"#, #"{"access_token":""}"#, "",
    ])
    func withoutTokensNothingIsRevoked(body: String) throws {
        var signIn = try Sample.redeeming(try Self.wanted())
        #expect(signIn.received(Sample.outcome(200, body), now: Sample.now).error != nil)
        #expect(signIn.tokensToRevoke == nil)
    }

    @Test func boundTokensAreKept() throws {
        var signIn = try Sample.redeeming(try Self.wanted())
        let tokens = Sample.outcome(200, #"{"access_token":"access-new","token_type":"DPoP"}"#)
        #expect(signIn.received(tokens, now: Sample.now).result != nil && signIn.tokensToRevoke == nil)
        var refresh = try Sample.refreshing(try Self.wanted())
        #expect(refresh.received(tokens, now: Sample.now).tokens != nil && refresh.tokensToRevoke == nil)
    }
}
