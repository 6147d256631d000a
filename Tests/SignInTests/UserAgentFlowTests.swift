// SPDX-License-Identifier: Apache-2.0

import CountersignEnrollment
import CountersignOAuth
import CountersignTestOrigin
import FoundationEssentials
import Glibc
import Synchronization
import Testing

@testable import CountersignSignIn

/// Sign-ins with a user agent of an app's own.
@Suite struct UserAgentFlowTests {
    private static let scheme = "com.example.app:/callback"
    private let scratch: TemporaryFolder
    private let provider: SignInProvider

    init() throws {
        scratch = try TemporaryFolder()
        provider = try SignInProvider()
    }

    /// Follows the page's redirects by hand.
    private struct Window: UserAgent {
        var isNoticing = true
        let shown: @Sendable (SignInPage) async throws -> Void

        func notices(_ redirect: RedirectURI) -> Bool { isNoticing }
        func show(_ page: SignInPage) async throws { try await shown(page) }
    }

    private final class Log<Entry: Sendable>: Sendable {
        private let content = Mutex<[Entry]>([])
        var entries: [Entry] { content.withLock { $0 } }
        func add(_ entry: Entry) { content.withLock { $0.append(entry) } }
    }

    /// Where the provider sends a browser that opens `url`. curl knows no redirects to other schemes.
    private func redirect(from url: EndpointURL) throws -> String {
        let head = try Command.run(
            Tool.path("curl"), ["-sS", "--noproxy", "*", "-o", "/dev/null", "-D", "-", url.description], in: scratch)
        let lines = head.output.split(whereSeparator: \.isNewline)
        let location = lines.first { $0.lowercased().hasPrefix("location: ") }?.dropFirst(10)
        return try String(#require(location, "\(head.said)"))
    }

    private func flow(
        _ agent: (any UserAgent)?, redirect: String = scheme, limit: Duration = .seconds(120),
        report: @escaping @Sendable (SignInEvent) -> Void = { _ in }
    ) throws -> SignInFlow {
        let profile = try SignInProfile(Array(provider.profile(["redirect_uri": redirect]).utf8))
        let now: @Sendable () -> Int64 = { Int64(time(nil)) }
        let client = ProviderClient(anchors: .implicit(additional: [], revocationLists: []), refusing: [], now: now)
        return SignInFlow(
            profile, client: client, agent: agent.map { .browser($0) } ?? .device, limit: limit, now: now,
            report: report)
    }

    /// `com.example.app:/callback`, https, and a loopback URI whose listener is not needed.
    @Test(arguments: [scheme, "https://app.example/callback", "http://127.0.0.1/callback"])
    func anAgentThatNoticesTheRedirectCompletesTheSignIn(uri: String) async throws {
        let (verdicts, pages) = (Log<RedirectVerdict>(), Log<SignInPage>())
        let agent = Window { page in
            pages.add(page)
            verdicts.add(page.redirected(to: try redirect(from: page.url)))
        }
        let result = try await flow(agent, redirect: uri).run()
        #expect(result.idToken?.subject == "248289761001")
        #expect(verdicts.entries == [.accepted])
        let page = try #require(pages.entries.first)
        #expect(page.origins.map(\.description) == [provider.issuer])
        #expect(page.redirect.description.hasPrefix(uri.prefix(16)))
    }

    @Test func aRedirectOfSomebodyElseDoesNotEndTheSignIn() async throws {
        let (verdicts, events) = (Log<RedirectVerdict>(), Log<SignInEvent>())
        let agent = Window { page in
            verdicts.add(page.redirected(to: "\(Self.scheme)?code=evil&state=evil"))
            verdicts.add(page.redirected(to: "com.example.other:/callback?code=evil"))
            page.report(.navigationRefused(url: "https://evil.example/", reason: "test"))
            let redirect = try self.redirect(from: page.url)
            verdicts.add(page.redirected(to: redirect))
            verdicts.add(page.redirected(to: redirect))
        }
        _ = try await flow(agent, report: { events.add($0) }).run()
        #expect(verdicts.entries == [.foreign, .foreign, .accepted, .foreign])
        #expect(events.entries.contains(.agent(.navigationRefused(url: "https://evil.example/", reason: "test"))))
        let ignored = events.entries.filter { if case .redirectIgnored = $0 { true } else { false } }
        #expect(ignored.count == 2)
    }

    /// A page can leave its hosts, and another process can send redirects, without end.
    @Test func onlyTheFirstOfManyEventsAreReported() async throws {
        let events = Log<SignInEvent>()
        let agent = Window { page in
            for _ in 0..<600 { page.report(.navigationRefused(url: "https://evil.example/", reason: "test")) }
            for _ in 0..<10 { _ = page.redirected(to: "\(Self.scheme)?code=evil&state=evil") }
            _ = page.redirected(to: try redirect(from: page.url))
        }
        _ = try await flow(agent, report: { events.add($0) }).run()
        let many = events.entries.dropFirst(2)
        #expect(many.dropFirst(500).first == .agent(.othersOmitted))
        #expect(many.dropFirst(501) == [.authorized, .finished])
    }

    @Test func aDenialIsAFailedSignIn() async throws {
        try provider.change(["error": "access_denied"])
        let verdicts = Log<RedirectVerdict>()
        let agent = Window { verdicts.add($0.redirected(to: try redirect(from: $0.url))) }
        let error = await #expect(throws: OAuthError.self) { try await flow(agent).run() }
        #expect(error?.code == .denied && verdicts.entries == [.failed])
    }

    /// The window of an app that the person closes, for example.
    @Test func anErrorOfTheAgentEndsTheSignIn() async throws {
        let agent = Window { _ in throw SignInError(.cancelled, "the window was closed") }
        for uri in [Self.scheme, "http://127.0.0.1/"] {
            let error = await #expect(throws: SignInError.self) { try await flow(agent, redirect: uri).run() }
            #expect(error?.code == .cancelled && error?.detail == "the window was closed")
        }
    }

    @Test(arguments: [scheme, "http://127.0.0.1/"])
    func theSignInEndsInTime(uri: String) async throws {
        let closed = Log<Bool>()
        let agent = Window { _ in
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(600)) }
            closed.add(true)
        }
        let flow = try flow(agent, redirect: uri, limit: .milliseconds(50))
        let error = await #expect(throws: SignInError.self) { try await flow.run() }
        #expect(error?.code == .timedOut && closed.entries == [true])
    }

    /// The code itself would be valid for a minute.
    @Test func theDeviceFlowEndsInTime() async throws {
        try provider.change(["device": 1000])
        let flow = try flow(nil, limit: .milliseconds(1900))
        let error = await #expect(throws: SignInError.self) { try await flow.run() }
        #expect(error?.code == .timedOut && error?.detail == "nobody has signed in within 1 seconds")
        #expect(provider.requests.filter { $0.contains("/token") }.count == 1)
    }

    /// The limit is for the person, and not for a provider that is slow to send its keys afterwards.
    @Test func theLimitOfTheDeviceFlowEndsWithTheConfirmation() async throws {
        try provider.change(["device": 0, "fail": ["/keys": 503]])
        let flow = try flow(nil, limit: .milliseconds(1900))
        let task = Task { try await flow.run() }
        while !provider.requests.contains(where: { $0.contains(" /keys") }) { await Task.yield() }
        try provider.change([:])
        #expect(try await task.value.idToken?.subject == "248289761001")
    }

    /// The flow waits until the agent has closed its window.
    @Test func aCancelledSignInEndsTheAgent() async throws {
        let (opened, closed) = (Log<Bool>(), Log<Bool>())
        let agent = Window { _ in
            opened.add(true)
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(600)) }
            closed.add(true)
        }
        let flow = try flow(agent)
        let task = Task { try await flow.run() }
        while opened.entries.isEmpty { await Task.yield() }
        task.cancel()
        await #expect(throws: SignInError(.cancelled, "")) { try await task.value }
        #expect(closed.entries == [true])
    }

    /// The provider is about to send the tokens or its keys.
    @Test(
        arguments: [
            ("/token", ["hold": ["authorization_code": 4]]), ("/keys", ["fail": ["/keys": "hang"]]),
        ] as [(String, [String: any Sendable])])
    func aCancelledSignInRevokesItsTokens(path: String, control: [String: any Sendable]) async throws {
        try provider.change(control)
        let agent = Window { page in _ = page.redirected(to: try redirect(from: page.url)) }
        let flow = try flow(agent)
        let task = Task { try await flow.run() }
        while !provider.requests.contains(where: { $0.contains(" \(path)") }) { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let revoked = provider.requests.filter { $0.contains("/revoke") }
        #expect(revoked == ["POST /revoke refresh_token 200", "POST /revoke access_token 200"], "\(revoked)")
    }

    // MARK: Private windows

    /// A browser that is a script of sh, with `$profile`, `$url` and a command that follows the URL's redirects.
    private func browser(_ script: String) throws -> PrivateBrowser {
        let text = """
            #!/bin/sh
            profile=${1#--user-data-dir=}
            for url in "$@"; do :; done
            location() { curl -sS --noproxy '*' -o /dev/null -w '%{redirect_url}' "$url"; }
            \(script)

            """
        let path = try scratch.write(program: "bin/chromium", text)
        let bin = path.dropLast("/chromium".count)
        return PrivateBrowser(environment: ["PATH": "\(bin):/usr/bin:/bin", "TMPDIR": scratch.path])
    }

    private var profiles: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: scratch.path)
                .filter { $0.hasPrefix("countersign-browser-") }
        }
    }

    @Test func closingThePrivateWindowEndsTheSignIn() async throws {
        let browser = try browser("touch \"$profile/Local State\"; sleep 1 & exit 0")
        let flow = try flow(browser, redirect: "http://127.0.0.1/")
        let error = await #expect(throws: SignInError.self) { try await flow.run() }
        #expect(error?.code == .cancelled && error?.detail.contains("the window was closed") == true)
        #expect(try profiles.isEmpty)
    }

    /// The first process passes the page to another one, or ends while the redirect is on its way.
    @Test(arguments: [
        "setsid sh -c 'sleep 4; exec curl -sSL --noproxy \"*\" -o /dev/null \"$2\"' sh \"$profile\" \"$url\" &",
        "(sleep 4; exec curl -sSL --noproxy '*' -o /dev/null \"$url\") &",
        "setsid sh -c 'sleep 0.6; exec curl -sS --noproxy \"*\" -o /dev/null \"$1\"' sh \"$(location)\" &",
    ])
    func theFirstProcessOfAPrivateWindowMayEnd(script: String) async throws {
        let browser = try browser("touch \"$profile/Local State\"; \(script)")
        let result = try await flow(browser, redirect: "http://127.0.0.1/").run()
        #expect(result.idToken?.subject == "248289761001")
    }

    /// A wrapper that has passed the page to the person's own browser, for example.
    @Test func aBrowserThatHasNotUsedItsProfileDoesNotEndTheSignIn() async throws {
        let events = Log<SignInEvent>()
        let flow = try flow(
            try browser("exit 0"), redirect: "http://127.0.0.1/", limit: .seconds(5), report: { events.add($0) })
        let error = await #expect(throws: SignInError.self) { try await flow.run() }
        #expect(error?.code == .timedOut)
        let reasons = events.entries.compactMap { if case .agent(.notShown(let reason)) = $0 { reason } else { nil } }
        #expect(reasons.count == 1 && reasons[0].contains("ended without using its profile"), "\(reasons)")
    }

    /// The next private browser removes the folder of a killed process; a folder in use stays, even if only its browser
    /// still runs.
    @Test func anAbandonedBrowserProfileIsRemoved() async throws {
        let environment = ["TMPDIR": scratch.path]
        let used = try LockedFolder.browser(environment)
        func abandoned(_ name: String) throws -> String {
            try scratch.write("\(name)/lock", "")
            try scratch.write("\(name)/profile/Cookies", "canary")
            return scratch.file(name)
        }
        _ = try abandoned("countersign-browser-abcdef")
        let running = try abandoned("countersign-browser-ghijkl")
        let browser = try AgentProcess(
            ["/bin/sh", "-c", "sleep 600; true", "--user-data-dir=\(running)/profile"], environment: [:])
        let next = try LockedFolder.browser(environment)
        let expected = [used.path, next.path, running].map { $0.split(separator: "/").last.map(String.init) ?? "" }
        #expect(try profiles.sorted() == expected.sorted())
        browser.end()
        _ = await browser.status()
        _ = try LockedFolder.browser(environment)
        #expect(try !profiles.contains("countersign-browser-ghijkl"))
    }

    @Test(arguments: [scheme, "https://app.example/callback"])
    func anAgentThatDoesNotNoticeTheRedirectIsRefused(uri: String) async throws {
        let agent = Window(isNoticing: false) { _ in Issue.record("the page was opened") }
        let error = await #expect(throws: SignInError.self) { try await flow(agent, redirect: uri).run() }
        #expect(error?.code == .profile && error?.detail.contains("does not notice") == true)
        #expect(provider.requests.isEmpty)
    }
}
