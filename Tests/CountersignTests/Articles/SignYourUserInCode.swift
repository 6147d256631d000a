// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignTesting
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// The code of the article "Sign your user in".
struct SignYourUserInCode {
    private let home: EnrollmentHome

    init() throws { home = try EnrollmentHome() }

    private final class Box<Value: Sendable>: Sendable {
        private let content: Mutex<Value>
        init(_ value: sending Value) { content = Mutex(value) }
        func change(_ body: (inout sending Value) -> sending Void) { content.withLock { body(&$0) } }
        var value: Value { content.withLock { $0 } }
    }

    // MARK: The article

    func signIn(home: URL, profile place: String, with agent: SignInAgent) async throws {
        let signIns = try SignIns(home: home)
        let profile = try await signIns.profile(at: place)
        let enrollment = try signIns.enrollment(profile)
        guard userAgrees(to: enrollment) else { return }
        let progress = enrollment.progress
        Task { for await event in progress { show(event) } }
        let signIn = try await enrollment.signIn(with: agent)
        print("signed in as \(signIn.account ?? signIn.name)")
    }

    func userAgrees(to enrollment: Enrollment) -> Bool {
        let profile = enrollment.profile
        print("\(profile.source) signs you in at \(profile.issuer) as \"\(enrollment.name)\"")
        print("scopes: \(profile.scopes.joined(separator: " "))")
        for site in profile.sites { print("\(site) gets your access token") }
        if let service = profile.certificateService {
            print("\(service.server) gets your access token, and issues a certificate for \(service.sites)")
        }
        return true
    }

    func ownProfile() throws -> EnrollmentProfile {
        try EnrollmentProfile(
            issuer: "https://id.corp.example", clientID: "mail-app", scopes: ["openid", "offline_access", "mail.read"],
            sites: ["https://api.corp.example"], name: "mail")
    }

    func signIn(_ enrollment: Enrollment, as account: String) async throws -> StoredSignIn {
        enrollment.options = SignInOptions(prompt: .login, loginHint: account)
        return try await enrollment.signIn()
    }

    func authorization(_ signIns: SignIns) async throws -> String {
        do {
            let token = try await signIns.token(for: "mail", scopes: ["mail.read"])
            return "Bearer \(token.value.text)"
        } catch let error as ChallengeError where error.code == .signInRequired {
            guard case .signIn(let name, let scopes)? = error.remedy,
                let signIn = try await signIns.all().first(where: { $0.name == name })
            else { throw error }
            try await signIns.enrollment(again: signIn, addingScopes: scopes).signIn()
            return "Bearer \(try await signIns.token(for: name).value.text)"
        }
    }

    func ask(_ question: String) async -> String? { nil }

    func answerPages(of enrollment: Enrollment) {
        enrollment.pageCallbackHandlers["NameCallback"] = { question in
            await ask("\(question.origin) asks: \(question.prompt)").map { .text(Password($0)) }
        }
    }

    func show(_ event: EnrollmentEvent) {
        switch event {
        case .page(let url): print("your browser opens \(url)")
        case .code(let code, let page, _): print("open \(page) in any browser, and enter \(code)")
        case .pageNotShown(let reason), .redirectIgnored(let reason): print("warning: \(reason)")
        default: break
        }
    }

    func signInLater(_ enrollment: Enrollment, with agent: SignInAgent) async throws -> StoredSignIn {
        let authorized = try await enrollment.authorize(with: agent)
        // The person is back. Do what has to be done before the tokens are fetched.
        return try await authorized.redeem()
    }

    func signOutEverywhere(_ signIns: SignIns) async throws {
        for signIn in try await signIns.all() {
            let result = try await signIns.signOut(signIn.name)
            if let warning = result.warning { print("the provider has not revoked the tokens: \(warning)") }
            if let page = result.page { print("to end the session in the browser, open \(page)") }
        }
    }

    struct AppWindow: UserAgent {
        let open: @Sendable (_ url: String, _ isRedirect: @escaping (String) -> Bool) async throws -> Void

        func show(_ page: SignInPage) async throws {
            try await open(page.url) { url in
                url.hasPrefix(page.redirectURI) && page.redirected(to: url)
            }
        }
    }

    func signInAtATestProvider(_ signIns: SignIns) async throws -> FakeIssuer {
        let issuer = try await FakeIssuer.start()
        let site = try await FakeSite.start(issuer)
        let enrollment = try signIns.enrollment(issuer.profile(sites: [site.url]))
        try await enrollment.signIn(with: .custom(FakeBrowser()))
        issuer.fail(.token, with: .status(503))
        return issuer
    }

    // MARK: Tests

    @Test func aTestProviderSignsInAndFailsWhenItShould() async throws {
        let signIns = try SignIns(home: URL(filePath: try TemporaryFolder("app").file("home")))
        _ = try await signInAtATestProvider(signIns)
        let stored = try #require(try await signIns.all().first)
        #expect(stored.account == "jdoe@acme.example")
    }

    private var browser: SignInAgent { .custom(EnrollmentHome.Browser(home)) }

    @Test func aPersonIsSignedInWithTenLines() async throws {
        let path = try home.folder.write("profile.json", home.profile().description)
        try await signIn(home: URL(filePath: home.path), profile: path, with: browser)
        let stored = try await home.signIns.all()
        #expect(stored.map(\.account) == ["jdoe@acme.example"])
    }

    @Test func theTokensAreFetchedLater() async throws {
        let signIn = try await signInLater(home.enrollment(), with: browser)
        #expect(try await home.signIns.all() == [signIn])
    }

    @Test func everybodyIsSignedOut() async throws {
        try await home.signIn()
        try await signOutEverywhere(home.signIns)
        #expect(try await home.signIns.all().isEmpty)
        #expect(home.provider.requests.contains("POST /revoke access_token 200"))
    }

    @Test func aWindowOfTheAppEndsAtTheRedirect() async throws {
        let isLoaded = Box(true)
        let window = AppWindow { url, isRedirect in
            let target = try await home.redirect(of: url)
            isLoaded.change { $0 = !isRedirect(target) }
        }
        let signIn = try await home.enrollment().signIn(with: .custom(window))
        #expect(signIn.name == "work" && !isLoaded.value)
    }
}
