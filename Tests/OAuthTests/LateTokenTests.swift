// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

/// Tokens that come late, rotated, or with keys that have changed.
@Suite struct LateTokenTests {
    @Test func tokensAfterACancellationAreForTheCallerToRevoke() throws {
        var signIn = try Sample.redeeming()
        let ended = signIn.cancelled()
        #expect(ended.error?.code == .cancelled && signIn.tokensToRevoke == nil)
        #expect(signIn.received(Sample.tokens(#","refresh_token":"refresh-late""#), now: Sample.now) == ended)
        #expect(signIn.tokensToRevoke?.refreshToken?.utf8Text == "refresh-late")
        for action in [signIn.redeem(), signIn.waited(now: 0), signIn.cancelled(), signIn.start()] {
            #expect(action == ended)
        }
    }

    @Test func aCancellationAfterTheEndChangesNothing() throws {
        var signIn = try Sample.redeeming(try Sample.wanted(scopes: ["api"]))
        let ended = signIn.received(Sample.tokens(), now: Sample.now)
        #expect(ended.result?.tokens.accessToken.utf8Text == "access-new")
        #expect(signIn.cancelled() == ended)
        #expect(signIn.tokensToRevoke == nil)
    }

    @Test func aKeyThatWasReplacedUnderItsNameIsFetched() throws {
        let (old, new) = (try IDSigner(), try IDSigner())
        for name in ["k", nil] {
            let tokens = Sample.tokens(",\"id_token\":\"\(try new.token(keyIdentifier: name))\"")
            var signIn = try Sample.redeeming(keys: try old.keySet)
            #expect(signIn.received(tokens, now: Sample.now).request?.purpose == .keys)
            var forged = signIn
            #expect(signIn.received(Sample.outcome(200, new.keys), now: Sample.now).result?.idToken?.subject == "jo")
            let failed = forged.received(Sample.outcome(200, old.keys), now: Sample.now)
            #expect(failed.error?.code == .invalidIDToken)
            #expect(forged.tokensToRevoke != nil)
            var refresh = try Sample.refreshing(keys: try old.keySet)
            #expect(refresh.received(tokens, now: Sample.now).isKeysRequest)
            var forgery = refresh
            #expect(refresh.received(Sample.outcome(200, new.keys), now: Sample.now).tokens?.idToken != nil)
            #expect(
                forgery.received(Sample.outcome(200, old.keys), now: Sample.now).error?.code == .invalidIDToken)
        }
    }

    @Test func anOutageOfTheKeysAfterRedemptionIsWaitedFor() throws {
        let signer = try IDSigner()
        var signIn = try Sample.redeeming()
        _ = signIn.received(Sample.tokens(",\"id_token\":\"\(try signer.token())\""), now: Sample.now)
        for seconds in [1, 2, 5] as [Int64] {
            #expect(signIn.received(Sample.outcome(503, ""), now: Sample.now) == .wait(seconds: seconds))
            #expect(signIn.waited(now: Sample.now).request?.purpose == .keys)
        }
        var lost = signIn
        #expect(signIn.received(Sample.outcome(200, signer.keys), now: Sample.now).result != nil)
        #expect(lost.received(Sample.outcome(503, ""), now: Sample.now).error?.code == .unavailable)
        #expect(lost.tokensToRevoke?.accessToken.utf8Text == "access-new")
    }

    @Test func anIDTokenThatWasNotAskedForIsNeitherCheckedNorKept() throws {
        let api = try Sample.wanted(scopes: ["api"])
        var signIn = try Sample.redeeming(api)
        let result = signIn.received(Sample.tokens(#","id_token":"a.b.c""#), now: Sample.now).result
        #expect(result?.tokens.accessToken.utf8Text == "access-new" && result?.tokens.idToken == nil)
        var refresh = try Sample.refreshing(api)
        let tokens = refresh.received(Sample.tokens(#","id_token":"a.b.c""#), now: Sample.now).tokens
        #expect(tokens?.accessToken.utf8Text == "access-new" && tokens?.idToken?.utf8Text == "id-old")
    }

    @Test(arguments: [("exp", "7"), ("iat", "\(Sample.now + 9000)"), ("nbf", "\(Sample.now + 9000)")])
    func aWrongClockDoesNotStopARefresh(claim: String, value: String) throws {
        let signer = try IDSigner()
        var refresh = try Sample.refreshing(keys: try signer.keySet)
        let token = try signer.token([claim: value])
        let tokens = refresh.received(Sample.tokens(",\"id_token\":\"\(token)\""), now: Sample.now).tokens
        #expect(tokens?.accessToken.utf8Text == "access-new" && tokens?.idToken?.utf8Text == "id-old")
    }

    @Test func keysThatAreMissingDoNotStopARefresh() throws {
        let (signer, other) = (try IDSigner(), #"{"keys":[]}"#)
        for outcome in [Sample.outcome(200, other), Sample.outcome(503, ""), Sample.outcome(200, "x")] {
            var refresh = try Sample.refreshing()
            #expect(
                refresh.received(Sample.tokens(",\"id_token\":\"\(try signer.token())\""), now: Sample.now)
                    .isKeysRequest)
            #expect(refresh.received(outcome, now: Sample.now).tokens?.idToken?.utf8Text == "id-old")
        }
    }

    @Test(arguments: [("iss", #""https://evil.example""#), ("aud", #""x""#), ("at_hash", #""AAAA""#)])
    func anIDTokenForSomethingElseStopsARefreshAfterTheStore(claim: String, value: String) throws {
        let signer = try IDSigner()
        var refresh = try Sample.refreshing(keys: try signer.keySet)
        let more = ",\"refresh_token\":\"refresh-new\",\"id_token\":\"\(try signer.token([claim: value]))\""
        #expect(refresh.received(Sample.tokens(more), now: Sample.now).stored?.refreshToken?.utf8Text == "refresh-new")
        let failed = refresh.stored()
        #expect(failed.error?.code == .invalidIDToken && failed.discardsTokens == false)
        var other = try Sample.refreshing()
        let account = Sample.tokens(
            ",\"refresh_token\":\"refresh-new\",\"id_token\":\"\(try signer.token(["sub": "\"al\""]))\"")
        #expect(other.received(account, now: Sample.now).error?.code == .accountChanged)
    }

    /// Even if the rest of the response is unusable, and without an ID token.
    @Test func everyNewRefreshTokenIsStoredFirst() throws {
        var plain = try Sample.refreshing()
        let stored = plain.received(Sample.tokens(#","refresh_token":"refresh-new""#), now: Sample.now).stored
        #expect(stored?.refreshToken?.utf8Text == "refresh-new")
        #expect(stored?.accessToken.utf8Text == "access-old")
        #expect(plain.stored().tokens?.accessToken.utf8Text == "access-new")
        var broken = try Sample.refreshing()
        let body = #"{"access_token":7,"refresh_token":"refresh-new"}"#
        #expect(
            broken.received(Sample.outcome(200, body), now: Sample.now).stored?.refreshToken?.utf8Text
                == "refresh-new")
        let failed = broken.stored()
        #expect(failed.error?.code == .malformedResponse && failed.discardsTokens == false)
    }
}
