// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import Testing

@testable import CountersignSignIn

/// The reason that the end of a sign-in repeats.
@Suite struct VisitRecordTests {
    private func profile() throws -> SignInProfile {
        try SignInProfile(
            Array(#"{"issuer":"https://login.example","client_id":"app-1","redirect_uri":"app.example:/cb"}"#.utf8))
    }

    private func end(_ events: UserAgentEvent..., with error: SignInError = .timedOut(after: .seconds(9))) throws
        -> SignInError
    {
        var record = VisitRecord()
        for event in events { record.note(event) }
        return try #require(record.explaining(error, try profile()) as? SignInError)
    }

    @Test func theLastReasonIsRepeated() throws {
        let refused = UserAgentEvent.navigationRefused(url: "msauth://enroll", reason: "it is special", hint: "do this")
        let error = try end(.loadFailed(url: "https://a/", reason: "gone"), refused)
        #expect(
            error.detail == "nobody has signed in within 9 seconds; before that, the window did not go to "
                + "msauth://enroll: it is special")
        #expect(error.hint == "do this" && error.code == .timedOut)
        #expect(try end(refused, with: .windowClosed).detail.hasSuffix("msauth://enroll: it is special"))
    }

    @Test func aPageThatWasLoadedInTheEndIsNoReason() throws {
        let failed = UserAgentEvent.loadFailed(url: "https://a/", reason: "gone")
        #expect(try end(failed).detail.hasSuffix("https://a/ could not be loaded: gone"))
        #expect(!(try end(failed, .loadFinished(url: "https://a/"))).detail.contains("gone"))
    }

    /// Providers do not redirect with errors about the client or its redirect URI.
    @Test func withoutAReasonTheRegistrationIsGuessed() throws {
        let error = try end(.loadFinished(url: "https://a/"))
        #expect(error.detail.contains("may have shown a page, and did not return"))
        #expect(error.hint?.contains("client_id \"app-1\" and redirect_uri app.example:/cb") == true)
        #expect(try end(with: .windowClosed).detail == SignInError.windowClosed.detail)
        #expect(try end(with: .windowClosed).hint?.contains("app-1") == true)
    }

    @Test func otherErrorsStay() throws {
        let failed = UserAgentEvent.loadFailed(url: "https://a/", reason: "gone")
        #expect(try end(failed, with: SignInError(.cancelled, "x")).detail == "x")
        #expect(try end(failed, with: SignInError(.noAgent, "y")).hint == nil)
    }

    @Test func aHandOffNoticesThatNothingOpened() async throws {
        await #expect(throws: SignInError.self) {
            try await SystemBrowser(environment: ["BROWSER": "/bin/false", "PATH": "/none"]).handOff(
                "https://a.example/")
        }
        try await SystemBrowser(environment: ["BROWSER": "/bin/false:/bin/true", "PATH": "/none"])
            .handOff("https://a.example/")
    }
}
