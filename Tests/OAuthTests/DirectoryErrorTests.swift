// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Testing

@testable import CountersignOAuth

/// The remedies for the numbers of Microsoft's directory.
@Suite struct DirectoryErrorTests {
    @Test(arguments: [
        (50076, "second factor"), (50079, "registered first"), (53000, "compliant"), (53001, "domain"),
        (53003, "access policy"), (530_003, "managed"), (530_002, "compliant"), (65001, "agreed"), (50105, "assigned"),
        (700_016, "\"client_id\""), (7_000_218, "secret"), (50011, "\"redirect_uri\""), (50126, "password is wrong"),
        (50055, "has expired"), (50057, "disabled"), (700_082, "not used"), (70008, "refresh token"),
        (90072, "does not exist"),
    ])
    func aNumberHasItsRemedy(number: Int, word: String) throws {
        let body = """
            {"error":"invalid_grant","error_description":"AADSTS\(number): A sentence (50126). Trace ID: 1"}
            """
        var refresh = try Sample.refreshing()
        let error = refresh.received(Sample.outcome(400, body), now: Sample.now).error
        let hint = try #require(error?.hint)
        #expect(hint.contains(word) && hint.count <= 200 && !hint.contains("\n") && !hint.hasSuffix("."), "\(hint)")
        #expect(hint.first?.isUppercase == false && hint.contains(":"))
        // A hint only: the number decides nothing.
        #expect(error?.code == .invalidGrant)
    }

    @Test(arguments: ["", "AADSTS", "AADSTS1: x", "AADSTS500760: x", "AADSTS-50076", "50076: x", "ADSTS50076"])
    func otherTextsHaveNone(text: String) {
        #expect(DirectoryError.advice(in: text) == nil)
        #expect(DirectoryError.explained(text) == text)
    }

    @Test func theRedirectHasItToo() throws {
        var (browser, _) = try Sample.begun()
        let query = "error=access_denied&error_description=AADSTS65004:+User+declined&state=\(Sample.secrets.state)"
        guard case .accepted(let action) = browser.redirected(.query(query)) else {
            Issue.record("the redirect was not accepted")
            return
        }
        #expect(action.error?.code == .denied && action.error?.hint?.contains("were declined") == true)
    }

    @Test func theRemedyFollowsTheText() {
        let text = "the token endpoint reports invalid_grant: AADSTS700082: The refresh token has expired."
        #expect(DirectoryError.explained(text).hasSuffix("for a long time: sign in again"))
        #expect(DirectoryError.explained(text, signsIn: true).hasSuffix("for a long time"))
    }
}
