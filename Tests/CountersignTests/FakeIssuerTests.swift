// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignTestOrigin
import CountersignTesting
import CountersignURLSession
import CountersignVault
import Foundation
import FoundationNetworking
import Synchronization
import Testing

/// The provider and the site for the tests of apps, used as such a test uses them.
@Suite(.waiting) struct FakeIssuerTests {
    private let folder: TemporaryFolder
    private let issuer: FakeIssuer
    private let signIns: SignIns

    init() async throws {
        folder = try TemporaryFolder("app")
        issuer = try await FakeIssuer.start()
        signIns = try SignIns(home: URL(filePath: folder.file("home")))
    }

    @discardableResult
    private func signIn(
        _ profile: EnrollmentProfile, with agent: SignInAgent = .custom(FakeBrowser()),
        timeout: Duration = .seconds(120)
    ) async throws -> StoredSignIn {
        try await signIns.enrollment(profile).signIn(with: agent, timeout: timeout)
    }

    @Test func aPersonIsSignedInWithoutABrowser() async throws {
        let signIn = try await signIn(try issuer.profile(name: "work"))
        #expect(signIn.name == "work" && signIn.account == "jdoe@acme.example" && signIn.isRenewable)
        #expect(
            issuer.requests == [
                "GET /.well-known/openid-configuration", "POST /push", "GET /authorize", "POST /token", "GET /keys",
            ])
        try await signIns.signOut("work")
        #expect(issuer.requests.suffix(2) == ["POST /revoke", "POST /revoke"])
    }

    @Test func aCodeIsConfirmedByNobody() async throws {
        let signIn = try await signIn(try issuer.profile(), with: .device)
        #expect(signIn.name == "test" && issuer.requests.contains("POST /device"))
    }

    @Test(
        arguments: [
            (.metadata, .status(503), .providerUnreachable), (.metadata, .garbled, .providerRefused),
            (.pushedAuthorization, .status(500), .providerUnreachable), (.token, .down, .providerUnreachable),
            (.token, .error("invalid_grant"), .providerRefused), (.token, .garbled, .providerRefused),
            (.authorization, .error("access_denied"), .signInDenied), (.authorization, .down, .userAgentFailed),
            (.authorization, .wrongIssuer, .providerRefused), (.authorization, .status(400), .userAgentFailed),
        ] as [(FakeIssuer.Endpoint, FakeIssuer.Failure, ChallengeError.Code)])
    func aFailureOfTheIssuerIsOneOfTheApp(
        endpoint: FakeIssuer.Endpoint, failure: FakeIssuer.Failure, code: ChallengeError.Code
    ) async throws {
        issuer.fail(endpoint, with: failure)
        let error = await #expect(throws: ChallengeError.self) { try await signIn(try issuer.profile()) }
        #expect(error?.code == code, "\(error.debugDescription)")
        #expect(try await signIns.all().isEmpty)
        issuer.fail(endpoint, with: nil)
        #expect(try await signIn(try issuer.profile()).name == "test")
    }

    /// A refresh token can be used once, and then a failure is over.
    @Test(
        arguments: [.down, .status(503), .error("temporarily_unavailable"), .garbled] as [FakeIssuer.Failure])
    func aFailureSpendsNothing(failure: FakeIssuer.Failure) async throws {
        try await signIn(try issuer.profile())
        let vault = try SealedVault(home: folder.file("home")).open { throw HarnessError("there is no passphrase") }
        let token = try #require(vault.contents.signIns["test"]?.refreshToken?.utf8Text)
        func refresh() async throws -> Int? {
            var request = URLRequest(url: try #require(URL(string: "\(issuer.url)/token")))
            request.httpMethod = "POST"
            request.httpBody = Data(
                "grant_type=refresh_token&client_id=\(FakeIssuer.clientID)&refresh_token=\(token)".utf8)
            let response = try? await URLSession(configuration: .ephemeral).data(for: request)
            let isWhole = response.flatMap { try? JSONSerialization.jsonObject(with: $0.0) } != nil
            return isWhole ? (response?.1 as? HTTPURLResponse)?.statusCode : nil
        }
        issuer.fail(.token, with: failure)
        #expect(try await refresh() != 200)
        issuer.fail(.token, with: nil)
        #expect(try await refresh() == 200)
        #expect(try await refresh() == 400)
    }

    @Test func aProfileInAFileIsFollowedAgain() async throws {
        let path = try folder.write("profile.json", try issuer.profile(name: "work").description)
        let first = try await signIn(try EnrollmentProfile(file: path))
        let again = try await signIns.enrollment(again: first, addingScopes: ["api"])
        #expect(try await again.signIn(with: .custom(FakeBrowser())).scopes.contains("api"))
        // A profile without a place is passed again.
        #expect(try issuer.profile().source == "FakeIssuer")
    }

    /// Nothing is sent to app.example.
    @Test func theBrowserDoesNotLeaveTheMachine() async throws {
        let home = try EnrollmentHome()
        let profile = try home.profile(["redirect_uri": "https://app.example/callback"])
        let signIn = try await home.signIns.enrollment(profile).signIn(with: .custom(FakeBrowser()))
        #expect(signIn.name == "work")
        try home.provider.change(["redirect": ["state": "another"]])
        let error = await #expect(throws: ChallengeError.self) {
            try await home.signIns.enrollment(profile).signIn(with: .custom(FakeBrowser()))
        }
        #expect(error?.detail.contains("redirects to another machine: https://app.example/callback") == true)
    }

    @Test func aWrongStateIsIgnored() async throws {
        issuer.fail(.authorization, with: .wrongState)
        let enrollment = try signIns.enrollment(try issuer.profile())
        let progress = enrollment.progress
        let task = Task { try await enrollment.signIn(with: .custom(FakeBrowser()), timeout: .seconds(60)) }
        var events: [EnrollmentEvent] = []
        for await event in progress {
            events.append(event)
            if case .redirectIgnored = event { task.cancel() }
        }
        await #expect(throws: CancellationError.self, "\(events)") { try await task.value }
    }

    @Test func aSlowIssuerIsWaitedForAndTheTaskCanBeCancelled() async throws {
        issuer.fail(.pushedAuthorization, with: .slow(.seconds(3600)))
        let task = Task { try await signIn(try issuer.profile()) }
        #expect(try await eventually { issuer.requests.contains("POST /push") })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func anIssuerThatHasStoppedIsUnreachable() async throws {
        let profile = try issuer.profile()
        await issuer.stop()
        let error = await #expect(throws: ChallengeError.self) { try await signIn(profile) }
        #expect(error?.code == .providerUnreachable)
    }

    /// Signs in again with the scopes.
    private final class Person: ScopeDelegate {
        private let signIns: SignIns
        private let profile: EnrollmentProfile
        private let questions = Mutex<[ScopeQuestion]>([])
        private let successes = Mutex(0)

        init(_ signIns: SignIns, _ profile: EnrollmentProfile) {
            self.signIns = signIns
            self.profile = profile
        }

        var asked: [ScopeQuestion] { questions.withLock { $0 } }
        var hasObtained: Bool { successes.withLock { $0 > 0 } }

        func obtainScopes(_ question: ScopeQuestion) async -> Bool {
            questions.withLock { $0.append(question) }
            do {
                try await signIns.enrollment(profile.adding(scopes: question.scopes), name: question.signIn)
                    .signIn(with: .custom(FakeBrowser()))
                successes.withLock { $0 += 1 }
                return true
            } catch {
                Issue.record("\(error)")
                return false
            }
        }
    }

    /// The site's response is delivered, and the next request gets the new token.
    @Test func aProxyAsksThePersonMeanwhile() async throws {
        let site = try await FakeSite.start(issuer, scopes: ["api"])
        try folder.write("home/Certs/anchors/site.pem", site.anchor)
        let profile = try issuer.profile(sites: [site.url])
        try await signIn(profile)
        let controller = try ChallengeController(home: URL(filePath: folder.file("home")))
        let person = Person(SignIns(controller), profile)
        controller.scopeDelegate = person
        let proxy = ChallengeProxy(controller)
        let running = Task { try await proxy.run() }
        defer { running.cancel() }
        let session = URLSession(
            configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
        let url = try #require(URL(string: site.url))
        func response() async throws -> HTTPURLResponse? { try await session.data(from: url).1 as? HTTPURLResponse }
        let first = try await response()
        #expect(first?.statusCode == 403)
        #expect(first?.value(forHTTPHeaderField: "Proxy-Status")?.contains("the person is being asked for it") == true)
        #expect(try await eventually { person.hasObtained })
        #expect(try await response()?.statusCode == 200)
        #expect(person.asked.map(\.scopes) == [["api"]] && person.asked.first?.signIn == "test")
    }

    /// The whole way: signed in, answered at a site, renewed when revoked, refused without the scope.
    @Test func aSiteGetsTheToken() async throws {
        let site = try await FakeSite.start(issuer)
        let writing = try await FakeSite.start(issuer, scopes: ["api"])
        try folder.write("home/Certs/anchors/site.pem", site.anchor)
        try folder.write("home/Certs/anchors/writing.pem", writing.anchor)
        try await signIn(try issuer.profile(sites: [site.url, writing.url]))
        let controller = try ChallengeController(home: URL(filePath: folder.file("home")))
        let proxy = ChallengeProxy(controller)
        let running = Task { try await proxy.run() }
        defer { running.cancel() }
        let session = URLSession(
            configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
        func status(_ url: String) async throws -> Int? {
            let url = try #require(URL(string: url))
            return (try await session.data(from: url).1 as? HTTPURLResponse)?.statusCode
        }
        #expect(try await status("\(site.url)/first") == 200)
        #expect(site.requests == ["GET /first 401", "GET /first 200"])
        #expect(try await status("\(writing.url)/second") == 403)

        let space = ProtectionSpace(host: "localhost", port: site.port, authenticationMethod: .bearer)
        let given = await controller.handle(AuthenticationChallenge(protectionSpace: space)).1
        guard case .token(let token)? = given else {
            Issue.record("no token")
            return
        }
        #expect(issuer.accepts(token.text) && !issuer.accepts(token.text, scopes: ["api"]))
        issuer.revoke(token.text)
        #expect(!issuer.accepts(token.text))
        #expect(try await status("\(site.url)/third") == 200)
        #expect(site.requests.last == "GET /third 200")
    }
}
