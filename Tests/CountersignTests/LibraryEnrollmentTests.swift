// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// An app that signs its user in, with a provider and a browser that follows redirects.
@Suite(.waiting) struct LibraryEnrollmentTests {
    private static func collect(_ stream: AsyncStream<EnrollmentEvent>) async -> [EnrollmentEvent] {
        await stream.reduce(into: []) { $0.append($1) }
    }

    @Test func aPersonIsSignedInAndTheSitesAreAnswered() async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment()
        #expect(enrollment.name == "work" && enrollment.profile.issuer == home.provider.issuer)
        #expect(enrollment.profile.scopes == ["openid", "offline_access"])
        #expect(enrollment.siteLines == ["\(EnrollmentHome.site) answer=bearer credential=work"])
        #expect(try await enrollment.replaced == nil)
        // Nothing is written before the sign-in begins.
        #expect(!FileManager.default.fileExists(atPath: home.path))
        let progress = enrollment.progress
        let signIn = try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        #expect(try home.vault.signIns["work"]?.userAgent == "")
        #expect(signIn.account == "jdoe@acme.example" && signIn.subject == "248289761001" && signIn.isRenewable)
        #expect(signIn.scopes == ["openid", "offline_access"] && !signIn.hasEnded(at: signIn.signedIn))
        #expect(try await home.signIns.all() == [signIn])
        #expect(try await enrollment.replaced == signIn)

        let events = await Self.collect(progress)
        try #require(events.count == 5, "\(events)")
        #expect(events[0] == .started(issuer: home.provider.issuer))
        guard case .page(let url) = events[1] else {
            Issue.record("\(events[1])")
            return
        }
        #expect(url.hasPrefix("\(home.provider.issuer)/authorize?"))
        #expect(Array(events[2...]) == [.authorized, .finished, .stored(signIn)])

        let controller = try ChallengeController(home: URL(filePath: home.path))
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: .git(.bearer)))
        guard case .token(let token)? = credential else {
            Issue.record("\(credential.debugDescription)")
            return
        }
        #expect(token.text.hasPrefix("canary-access-"))
    }

    @Test func inTheManualFormTheTokensComeWhenTheProgramAsks() async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment()
        let progress = enrollment.progress
        let authorized = try await enrollment.authorize(with: .custom(EnrollmentHome.Browser(home)))
        #expect(home.provider.requests.last == "GET /authorize 302")
        #expect(try await home.signIns.all().isEmpty)
        let signIn = try await authorized.redeem()
        #expect(home.provider.requests.suffix(2) == ["POST /token authorization_code 200", "GET /keys 200"])
        #expect(try await home.signIns.all() == [signIn])
        let events = await Self.collect(progress)
        #expect(events.suffix(3) == [.authorized, .finished, .stored(signIn)])
        // The code is for one use.
        let again = await #expect(throws: ChallengeError.self) { try await authorized.redeem() }
        #expect(again?.code == .providerRefused && again?.fault == .caller)
        #expect(home.provider.requests.count { $0.hasPrefix("POST /token") } == 1)
    }

    /// The kind of user agent is stored, even if the tokens are fetched later.
    @Test func aBrowserIsRememberedInTheManualForm() async throws {
        let home = try EnrollmentHome()
        let browser = try home.folder.write(
            program: "browser", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
        let signIns = try SignIns(home: home.path, environment: ["BROWSER": browser, "PATH": "/usr/bin:/bin"])
        let enrollment = try signIns.enrollment(try home.profile())
        try await enrollment.authorize(with: .system).redeem()
        #expect(try home.vault.signIns["work"]?.userAgent == "system")
    }

    @Test func aCodeIsShownByTheProgram() async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment()
        let progress = enrollment.progress
        let signIn = try await enrollment.signIn(with: .device)
        #expect(signIn.account == "jdoe@acme.example")
        #expect(try home.vault.signIns["work"]?.userAgent == "device")
        let page = "\(home.provider.issuer)/enter"
        let shown = await Self.collect(progress).contains(
            .code("WDJB-MJHT", page: page, pageWithCode: "\(page)?user_code=WDJB-MJHT"))
        #expect(shown)
        let manual = await #expect(throws: ChallengeError.self) { try await enrollment.authorize(with: .device) }
        #expect(manual?.code == .userAgentFailed)
    }

    @Test(arguments: ["http://127.0.0.1/callback", "com.example.app:/callback"])
    func aWindowOfTheProgramReportsTheRedirect(uri: String) async throws {
        let home = try EnrollmentHome()
        let window = EnrollmentHome.Window(home)
        let enrollment = try home.enrollment(["redirect_uri": uri])
        let progress = enrollment.progress
        let signIn = try? await enrollment.signIn(with: .custom(window), timeout: .seconds(60))
        let events = await Self.collect(progress)
        #expect(signIn?.account == "jdoe@acme.example", "\(events)")
        // The first one has the state of another sign-in.
        #expect(window.verdicts == [false, true])
    }

    @Test func aControllersVaultIsSharedWithItsSignIns() async throws {
        let home = try EnrollmentHome()
        let library = try LibraryHome("https://other.corp.example\n", openedBy: .file)
        let controller = try library.controller()
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.bearer)) }
        let signIns = SignIns(controller)
        let browser = EnrollmentHome.Browser(home)
        let signIn = try await signIns.enrollment(home.profile()).signIn(with: .custom(browser))
        // Without another reading of the files.
        #expect(controller.keeper.policy.current.credential(named: "work") != nil)
        #expect(try controller.canHandle(.git(.bearer)))
        #expect(try await signIns.all() == [signIn])
    }

    /// `est` in a profile.
    /// Nothing would remove them later.
    @Test(arguments: [("next", 0), ("corp", 1)])
    func theCookiesOfAnOtherSessionGoWithTheirProfile(group: String, count: Int) async throws {
        let home = try EnrollmentHome()
        let host = "work.corp.example"
        func profile(_ group: String, _ cookies: [String]) -> [String: any Sendable] {
            let session: [String: any Sendable] = ["group": group, "host": host, "cookies": cookies]
            return ["sites": ["https://\(host)"], "session": session]
        }
        try await home.signIn(profile("corp", ["sid"]))
        let cookie = Cookie(
            Cookie.Identity(name: "sid", domain: host, isHostOnly: true, path: "/"), value: Secret(utf8: "kanarie"),
            isSecure: true, isHTTPOnly: true, sameSite: .lax, expires: nil, stored: ChallengeController.now())
        try SealedVault(home: home.path).open { () throws in Secret(utf8: "") }.update { contents in
            for group in ["corp", "foreign"] {
                try contents.changeSession(SharedSession.Key(group: group, host: host), [.set(cookie)])
            }
        }
        // Other names are the same session.
        try await home.signIn(profile(group, ["sid", "more"]))
        let sessions = try await home.signIns.sharedSessions()
        #expect(sessions.count { $0.group == "corp" } == count && sessions.contains { $0.group == "foreign" })
        #expect(sessions.allSatisfy { $0.host == host && $0.cookies.map(\.name) == ["sid"] })
        #expect(sessions.allSatisfy { $0.cookies[0].expires == nil && $0.cookies[0].stored.timeIntervalSinceNow < 1 })
        #expect(try await home.signIns.clearSharedSessions(group: "foreign") == 1)
        #expect(try await home.signIns.sharedSessions().count == count)
        #expect(try await home.signIns.clearSharedSessions() == count)
        #expect(try await home.signIns.sharedSessions().isEmpty)
    }

    @Test func aSignInBringsACertificate() async throws {
        let server = try ESTServer(#"{"auth": "bearer", "clientCertificate": "optional"}"#)
        let home = try EnrollmentHome()
        let est: [String: any Sendable] = [
            "server": server.address(), "anchor": TextFile.text(server.certificate("ca")),
            "sites": ["https://pay.corp.example"],
        ]
        let enrollment = try home.enrollment(["est": est])
        let service = try #require(enrollment.profile.certificateService)
        #expect(service.server == server.address() && service.sites == ["https://pay.corp.example"])
        #expect(service.anchors.map(\.subject) == ["CN=EST CA,O=Test"])
        let progress = enrollment.progress
        let signIn = try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        #expect(
            await Self.collect(progress).suffix(2) == [
                .certificateRequested(server: server.address()), .stored(signIn),
            ])
        let certificate = try #require(signIn.certificate)
        #expect(certificate.subject == "CN=jdoe@acme.example" && certificate.server == server.address())
        #expect(certificate.notAfter.map { $0 > signIn.signedIn } == true)
        let controller = try ChallengeController(home: URL(filePath: home.path))
        let space = ProtectionSpace(host: "pay.corp.example", authenticationMethod: .clientCertificate)
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        guard case .identity(let identity)? = credential else {
            Issue.record("\(credential.debugDescription)")
            return
        }
        #expect(identity.chain.first?.notAfter == certificate.notAfter)
        try await home.signIns.signOut("work")
        #expect(try home.vault.identityNames.isEmpty && home.vault.enrollments.isEmpty)
    }

    @Test func withoutTheCertificateNothingIsStored() async throws {
        let server = try ESTServer(#"{"auth": "bearer", "fault": "500", "faultFor": "simpleenroll"}"#)
        let home = try EnrollmentHome()
        let est: [String: any Sendable] = [
            "server": server.address(), "anchor": TextFile.text(server.certificate("ca")),
        ]
        let enrollment = try home.enrollment(["est": est])
        let error = await #expect(throws: ChallengeError.self) {
            try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
        }
        #expect(error?.code == .providerUnreachable && error?.detail.contains("has issued no certificate") == true)
        #expect(try await home.signIns.all().isEmpty && home.vault.pendingEnrollments.isEmpty)
        #expect(home.provider.requests.contains("POST /revoke access_token 200"))
    }

    @Test func aPassphraseThatAnotherProcessHasChangedIsAskedForAgain() async throws {
        let home = try EnrollmentHome()
        let library = try LibraryHome("", openedBy: .passphrase(.init(utf8: LibraryHome.passphrase)))
        let given = Mutex([String]())
        let present = Mutex(LibraryHome.passphrase)
        let signIns = try SignIns(home: URL(filePath: library.path)) {
            let passphrase = present.withLock { $0 }
            given.withLock { $0.append(passphrase) }
            return Password(passphrase)
        }
        let signIn = try await signIns.enrollment(home.profile()).signIn(with: .custom(EnrollmentHome.Browser(home)))
        try SealedVault(home: library.path).open { () throws in .init(utf8: LibraryHome.passphrase) }
            .rekey(to: .passphrase(.init(utf8: "another")))
        let locked = await #expect(throws: ChallengeError.self) { try await signIns.all() }
        #expect(locked?.code == .vaultLocked)
        present.withLock { $0 = "another" }
        #expect(try await signIns.all() == [signIn])
        #expect(try await signIns.all() == [signIn])
        #expect(given.withLock { $0 } == [LibraryHome.passphrase, LibraryHome.passphrase, "another"])
    }

    @Test func anAuthorizationThatIsNotRedeemedEndsTheProgress() async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment()
        let events = Task { [progress = enrollment.progress] in await Self.collect(progress) }
        let isEnded = Mutex(false)
        let waiting = Task {
            let events = await events.value
            isEnded.withLock { $0 = true }
            return events
        }
        _ = try await enrollment.authorize(with: .custom(EnrollmentHome.Browser(home)))
        #expect(try await eventually { isEnded.withLock { $0 } })
        events.cancel()
        #expect(await waiting.value.last == .authorized)
    }

    // MARK: Signing out

    @Test func signingOutRemovesExactlyWhatTheSignInBrought() async throws {
        let home = try EnrollmentHome()
        try await home.signIn()
        try await home.enrollment(["sites": ["https://wiki.corp.example"]], name: "other")
            .signIn(with: .custom(EnrollmentHome.Browser(home)))
        let result = try await home.signIns.signOut("work")
        #expect(result.isRevoked && result.warning == nil)
        #expect(result.page?.hasPrefix("\(home.provider.issuer)/logout?") == true)
        #expect(
            home.provider.requests.suffix(2) == ["POST /revoke refresh_token 200", "POST /revoke access_token 200"])
        #expect(try await home.signIns.all().map(\.name) == ["other"])
        let controller = try ChallengeController(home: URL(filePath: home.path))
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.bearer)) }
        let wiki = ProtectionSpace(host: "wiki.corp.example", authenticationMethod: .bearer)
        #expect(try controller.canHandle(wiki))
        let again = await #expect(throws: ChallengeError.self) { try await home.signIns.signOut("work") }
        #expect(again?.code == .signInMissing)
    }

    @Test func aSignOutNeedsNoProvider() async throws {
        let home = try EnrollmentHome()
        try await home.signIn()
        try home.provider.change(["fail": ["/revoke": 503]])
        let result = try await home.signIns.signOut("work")
        #expect(!result.isRevoked && result.warning?.contains("cannot answer now") == true)
        #expect(try await home.signIns.all().isEmpty)
    }

    @Test func aHomeThatDoesNotExistHasNoSignIns() async throws {
        let home = try EnrollmentHome()
        #expect(try await home.signIns.all().isEmpty)
        let error = await #expect(throws: ChallengeError.self) { try await home.signIns.signOut("work") }
        #expect(error?.code == .signInMissing && error?.fault == .caller)
        #expect(!FileManager.default.fileExists(atPath: home.path))
    }

    // MARK: Ends before the sign-in

    @Test func aCancelledTaskEndsTheSignInAndClosesThePage() async throws {
        let home = try EnrollmentHome()
        let former = try await home.signIn()
        let agent = PatientAgent()
        let enrollment = try home.enrollment()
        let progress = enrollment.progress
        let task = Task { try await enrollment.signIn(with: .custom(agent)) }
        #expect(try await eventually { agent.isShowing })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(agent.hasEnded)
        #expect(await Self.collect(progress).count == 2)
        #expect(try await home.signIns.all() == [former])
    }

    @Test func aClosedPageEndsTheSignIn() async throws {
        let home = try EnrollmentHome()
        let closed = await #expect(throws: ChallengeError.self) {
            try await home.enrollment().signIn(with: .custom(PatientAgent(throwing: CancellationError())))
        }
        #expect(closed?.code == .signInCancelled && closed?.fault == .configuration)
        let failed = await #expect(throws: ChallengeError.self) {
            try await home.enrollment().signIn(with: .custom(PatientAgent(throwing: HarnessError("no window"))))
        }
        #expect(failed?.code == .userAgentFailed && failed?.detail.contains("no window") == true)
        #expect(try await home.signIns.all().isEmpty)
    }

    @Test func thePersonHasALimitedTime() async throws {
        let home = try EnrollmentHome()
        let error = await #expect(throws: ChallengeError.self) {
            try await home.enrollment().signIn(with: .custom(PatientAgent()), timeout: .milliseconds(300))
        }
        #expect(error?.code == .signInTimedOut)
    }

    /// The tokens arrive after the program has given up, and cannot be revoked.
    @Test func tokensThatNobodyRevokesAreReported() async throws {
        let home = try EnrollmentHome(["hold": ["authorization_code": 4], "fail": ["/revoke": 401]])
        let enrollment = try home.enrollment()
        let progress = enrollment.progress
        let task = Task { try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home))) }
        #expect(try await eventually { home.provider.requests.contains { $0.contains("/token") } })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let reason = await Self.collect(progress).compactMap { event -> String? in
            if case .tokensNotRevoked(let reason) = event { reason } else { nil }
        }
        #expect(reason == ["its revocation endpoint wants a password of the client, which has none"])
        #expect(try await home.signIns.all().isEmpty)
    }

    // MARK: Errors

    @Test(arguments: [true, false])
    func aProfileThatTheUserAgentCannotFollowIsFaulty(isNamed: Bool) async throws {
        let home = try EnrollmentHome()
        let enrollment = try home.enrollment(["form_post": true, "user_agent": "embedded"])
        let error = await #expect(throws: ChallengeError.self) {
            try await enrollment.signIn(with: isNamed ? .embedded : .automatic)
        }
        #expect(error?.code == .profileFaulty, "\(error.debugDescription)")
        #expect(error?.detail == "the profile's form_post does not work with the user agent embedded")
        #expect(home.provider.requests.isEmpty && !FileManager.default.fileExists(atPath: home.path))
    }

    @Test(
        arguments: [
            (["error": "access_denied"], .signInDenied, .configuration),
            (["fail": ["/token": 500]], .providerUnreachable, .peer), (["forge": "key"], .providerRefused, .peer),
            (["fail": ["/.well-known/openid-configuration": 503]], .providerUnreachable, .peer),
            (["redirect": ["iss": "https://evil.example"]], .providerRefused, .peer),
            (["metadata": ["issuer": "https://evil.example"]], .providerRefused, .peer),
        ] as [([String: any Sendable], ChallengeError.Code, ChallengeError.Fault)])
    func anErrorSaysWhoIsAtFault(
        control: [String: any Sendable], code: ChallengeError.Code, fault: ChallengeError.Fault
    ) async throws {
        let home = try EnrollmentHome(control)
        let error = await #expect(throws: ChallengeError.self) { try await home.signIn() }
        #expect(error?.code == code && error?.fault == fault, "\(error.debugDescription)")
        #expect("\(error.debugDescription)".contains("canary") == false)
        #expect(try await home.signIns.all().isEmpty)
    }

    @Test func aProviderThatIsAwayIsUnreachable() async throws {
        let home = try EnrollmentHome()
        let free = try Loopback.freePorts(1)[0]
        let error = await #expect(throws: ChallengeError.self) {
            try await home.signIn(["issuer": "http://127.0.0.1:\(free)"])
        }
        #expect(error?.code == .providerUnreachable && error?.fault == .peer, "\(error.debugDescription)")
    }

    @Test func aProfileIsReadFromAFileWithItsAbsolutePath() async throws {
        let home = try EnrollmentHome()
        let path = try home.folder.write("profile.json", home.provider.profile(["name": "work"]))
        let profile = try EnrollmentProfile(file: path)
        #expect(profile.source == path && profile.name == "work")
        #expect(profile.clientID == SignInProvider.client && profile.sites.isEmpty && profile.resources.isEmpty)
        #expect(try await home.signIns.profile(at: path) == profile)
        guard case .device? = try home.profile(["user_agent": "device"]).userAgent else {
            Issue.record("the profile's user agent is lost")
            return
        }
    }

    @Test func aFaultyProfileSaysWhere() async throws {
        let home = try EnrollmentHome()
        let path = try home.folder.write("profile.json", "{\n  \"issuer\": 1\n}\n")
        let faulty = #expect(throws: ChallengeError.self) { try EnrollmentProfile(file: path) }
        #expect(faulty?.code == .profileFaulty)
        #expect(faulty?.detail.contains("line 2") == true, "\(faulty.debugDescription)")
        let absent = #expect(throws: ChallengeError.self) { try EnrollmentProfile(file: "\(path).no") }
        #expect(absent?.code == .profileFaulty)
        let plain = await #expect(throws: ChallengeError.self) {
            try await home.signIns.profile(at: "http://corp.example/profile.json")
        }
        #expect(plain?.code == .profileFaulty, "\(plain.debugDescription)")
        let name = #expect(throws: ChallengeError.self) { try home.enrollment(name: "enrollment") }
        #expect(name?.code == .profileFaulty)
    }

    @Test func aNameIsTakenOverOnlyIfItWasChosen() async throws {
        let home = try EnrollmentHome()
        try await home.signIn()
        let other = try EnrollmentHome()
        let profile = try other.profile()
        let browser = SignInAgent.custom(EnrollmentHome.Browser(home))
        let error = await #expect(throws: ChallengeError.self) {
            try await home.signIns.enrollment(profile).signIn(with: browser)
        }
        #expect(error?.code == .nameInUse)
        #expect(other.provider.requests.isEmpty)
        let chosen = try await home.signIns.enrollment(profile, name: "work").signIn(with: browser)
        #expect(chosen.issuer == other.provider.issuer)
        #expect(try await home.signIns.all() == [chosen])
    }

    @Test func theNameOfAnotherCredentialIsNotTakenOver() async throws {
        let home = try EnrollmentHome()
        let library = try LibraryHome("", credentials: ["work": ("jdoe", "secret")])
        let signIns = try SignIns(home: URL(filePath: library.path))
        let error = await #expect(throws: ChallengeError.self) {
            try await signIns.enrollment(home.profile()).signIn(with: .custom(EnrollmentHome.Browser(home)))
        }
        #expect(error?.code == .nameInUse)
        #expect(home.provider.requests.isEmpty)
    }

    @Test func thePassphraseIsAskedForOnce() async throws {
        let home = try EnrollmentHome()
        let library = try LibraryHome("", openedBy: .passphrase(.init(utf8: LibraryHome.passphrase)))
        let count = Mutex(0)
        let signIns = try SignIns(home: URL(filePath: library.path)) {
            count.withLock { $0 += 1 }
            return Password(LibraryHome.passphrase)
        }
        let signIn = try await signIns.enrollment(home.profile()).signIn(with: .custom(EnrollmentHome.Browser(home)))
        #expect(try await signIns.all() == [signIn])
        #expect(count.withLock { $0 } == 1)
        let locked = await #expect(throws: ChallengeError.self) {
            try await SignIns(home: URL(filePath: library.path)).all()
        }
        #expect(locked?.code == .vaultLocked)
    }
}
