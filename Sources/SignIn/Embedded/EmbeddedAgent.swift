// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth
import Dispatch
import Glibc
import Synchronization

/// A window of our own: `countersign-webview`, which notices every kind of redirect URI and leaves the provider's
/// origins for nothing else. It shares no cookies with the person's browser, and those of ``SharedCookies`` with the
/// clients of a group.
package struct EmbeddedAgent: UserAgent {
    /// The proxy through which the window's requests go, so that sign-in pages that challenge are answered.
    package struct Door: Sendable {
        /// `http://user:password@127.0.0.1:port`.
        package let proxy: Secret
        /// The certificates that the window trusts, in PEM: the system's and those of the proxy.
        package let bundle: String
        /// The proof of this device for pages of listed sites; nil without one.
        package let device: DeviceProof?

        package init(proxy: Secret, bundle: String, device: DeviceProof? = nil) {
            self.proxy = proxy
            self.bundle = bundle
            self.device = device
        }
    }

    private let environment: [String: String]
    private let door: Door?
    private let cookies: SharedCookies?
    private let specialURLs: SpecialURLSupport?

    /// How long the window may take to report its cookies and to close.
    var closingLimit = DispatchTimeInterval.seconds(15)

    /// Without a `door`, the window's connections are direct. Without `cookies`, the window begins without any, and
    /// forgets its own. Without `specialURLs`, pages cannot ask for device management.
    package init(
        environment: [String: String], door: Door? = nil, cookies: SharedCookies? = nil,
        specialURLs: SpecialURLSupport? = nil
    ) {
        self.specialURLs = specialURLs
        self.environment = environment
        self.door = door
        self.cookies = cookies
    }

    /// Throws `noAgent` if the program is not installed.
    package static func check(_ environment: [String: String]) throws(SignInError) {
        _ = try WebViewProgram.path(in: environment)
    }

    package func notices(_ redirect: RedirectURI) -> Bool { true }

    package func show(_ page: SignInPage) async throws {
        // A provider on this machine: WebKit does not send plain http through a proxy with a password.
        let isPlain = page.origins.contains { $0.scheme == .http }
        guard let specialURLs else {
            let device = DeviceAnswers(page, page.origins, isPlain ? nil : door?.device)
            return try await show(page, isPlain ? nil : door, nil, SessionLoan(), device)
        }
        try await show(page, isPlain ? nil : door, specialURLs)
    }

    private func show(_ page: SignInPage, _ door: Door?, _ support: SpecialURLSupport) async throws {
        let feed = ResponseFeed()
        var doors: SpecialURLSupport.Doors?
        if door != nil, let open = support.openDoors { doors = try await open(support.origins(of: page), feed) }
        if doors == nil {
            page.report(
                .unavailable(
                    "no proxy sees the headers of the pages' responses: profiles whose address is in a header, and "
                        + "tokens for their installation, do not arrive"))
        }
        let loan = SessionLoan()
        let device = DeviceAnswers(page, support.origins(of: page), door?.device)
        let session = SystemSession(
            environment: environment, page: page, origins: support.origins(of: page), door: doors?.session ?? door,
            installer: support.installer, signIn: support.signIn, loan: loan, device: device,
            closingLimit: closingLimit)
        let flow = SpecialURLFlow(support, page, environment: environment) { try await session.run($0) }
        feed.connect { flow.received($0) }
        do {
            try await show(page, doors?.main ?? door, flow, loan, device)
        } catch {
            feed.disconnect()
            await doors?.close()
            throw error
        }
        feed.disconnect()
        await doors?.close()
    }

    private func show(
        _ page: SignInPage, _ door: Door?, _ flow: SpecialURLFlow?, _ loan: SessionLoan, _ device: DeviceAnswers
    ) async throws {
        let isPlain = page.origins.contains { $0.scheme == .http }
        var words = [try WebViewProgram.path(in: environment)]
        if let door { words += ["--ca-bundle", door.bundle] }
        if isPlain { words.append("--loopback-http") }
        let view = try WebViewProcess(words, environment: environment)
        let cookies = cookies.flatMap { page.mayShow($0.key.host) ? $0 : nil }
        let visit = Visit(view, page, cookies, flow, loan, device, closingLimit: closingLimit)
        let result = await withTaskCancellationHandler {
            var opening = WebViewOpening(page, proxy: door?.proxy, cookies, flow)
            opening.announcesDevice = device.isAnnounced
            return await visit.run(opening)
        } onCancel: {
            visit.cancel()
        }
        let status = await view.end()
        switch result {
        case .ended(let error): if let error { throw error }
        case .vanished:
            throw SignInError(
                .environment, "the web view ended unexpectedly, with the status \(status ?? -1)",
                hint: "WebKit needs the packages in Documentation/EmbeddedAgent.md; or use another --user-agent")
        }
    }
}

/// One window.
private final class Visit: Sendable {
    enum Result {
        /// With the error that ends the sign-in, if it is to end.
        case ended((any Error)?)
        /// There was no last event.
        case vanished
    }

    private let view: WebViewProcess
    private let page: SignInPage
    private let cookies: SharedCookies?
    private let closingLimit: DispatchTimeInterval
    /// Whether the window has been ordered to close.
    private let isClosing = Mutex(false)
    private let dialogue = PageDialogue()
    private let flow: SpecialURLFlow?
    private let loan: SessionLoan
    private let device: DeviceAnswers
    /// Why the sign-in ends, if it is not the person who has closed the window.
    private let failure = Mutex<(any Error)?>(nil)

    init(
        _ view: WebViewProcess, _ page: SignInPage, _ cookies: SharedCookies?, _ flow: SpecialURLFlow?,
        _ loan: SessionLoan, _ device: DeviceAnswers, closingLimit: DispatchTimeInterval
    ) {
        self.device = device
        self.flow = flow
        self.loan = loan
        self.view = view
        self.page = page
        self.cookies = cookies
        self.closingLimit = closingLimit
    }

    /// Returns when the window has closed, and no question to the person is open.
    func run(_ opening: WebViewOpening) async -> Result {
        loan.connect { [view] in view.send($0) }
        async let specials: Void? = flow?.run(
            SpecialURLFlow.View(
                load: { [view] in view.send(.load(url: $0, headers: $1)) },
                redirected: { [self] in redirected(to: $0) },
                fail: { [self] in fail($0) }))
        let result = await events(opening)
        dialogue.end()
        loan.end()
        flow?.end()
        _ = await specials
        await dialogue.hasEnded()
        return result
    }

    /// Closes the window. `error` ends the sign-in, unless it has ended already.
    private func fail(_ error: any Error) {
        end(with: .cancel, error)
    }

    private func redirected(to url: String) {
        switch page.redirected(to: url) {
        case .accepted: end(with: .close)
        case .failed: end(with: .cancel)
        case .foreign: break
        }
    }

    private func events(_ opening: WebViewOpening) async -> Result {
        while true {
            switch await view.next() {
            case .end: return .vanished
            case .tooLong: return .ended(SignInError.protocolFault("a line is too long"))
            case .line(let line):
                do throws(JSONError) {
                    if let result = handle(try WebViewEvent(line), opening) { return result }
                } catch {
                    return .ended(SignInError.protocolFault(error.reason))
                }
            }
        }
    }

    /// Closes the window, unless it is closing already: after an accepted redirect, its cookies have yet to arrive.
    func cancel() { end(with: .cancel) }

    /// Also ends a question at once: the person can no longer answer it, and may be typing with the echo off.
    private func end(with command: WebViewCommand, _ error: (any Error)? = nil) {
        dialogue.end()
        flow?.end()
        let isFirst = isClosing.withLock { isClosing in
            defer { isClosing = true }
            if !isClosing, let error { failure.withLock { $0 = error } }
            return !isClosing
        }
        guard isFirst else { return }
        view.send(command)
        view.kill(after: closingLimit)
    }

    /// Nil if the window continues.
    private func handle(_ event: WebViewEvent, _ opening: WebViewOpening) -> Result? {
        switch event {
        case .ready(WebViewEvent.protocolVersion): view.send(.open(opening))
        case .ready(let version): return .ended(SignInError.protocolFault("its version is \(version)"))
        case .loadStarted, .loadFinished, .loadFailed, .navigationRefused:
            if let event = UserAgentEvent(event) { page.report(event) }
        case .pageMessage(let id, let origin, let body):
            guard ask(id, PageMessage(origin: origin, body: body)) else { return .ended(SignInError.tooManyMessages) }
        case .pageMessagesGone: dialogue.forget()
        case .redirect(let url):
            if let flow, flow.isSpecial(url) { flow.met(url) } else { redirected(to: url) }
        case .cookies(let reported): cookies?.report(reported, at: Int64(time(nil)))
        case .session(let cookies, let omitted): loan.reported(SessionLoan.Report(cookies: cookies, omitted: omitted))
        case .specialURL(let url): flow?.met(url)
        case .deviceChallenge(let url): prove(url)
        case .profile: page.report(.profileNotInstalled(reason: "the page was not asked for one"))
        case .closed(let reason): return .ended(error(for: reason))
        case .failed(let code, let sentence, let remedy):
            return .ended(
                SignInError(
                    code.isMissingPart ? .noAgent : .environment, PageText.printable(sentence),
                    hint: PageText.printable(remedy)))
        }
        return nil
    }

    /// Answers a page's question for this device's certificate.
    private func prove(_ url: String) {
        do {
            view.send(try device.answer(to: url))
        } catch {
            fail(error)
        }
    }

    /// Puts a message to the person. Returns false if the page has sent too many.
    private func ask(_ id: Int64, _ message: PageMessage) -> Bool {
        page.report(.messageReceived(origin: message.origin))
        return dialogue.ask { [self] in
            guard let answer = await page.answer(message) else {
                // If the page is gone, it is not the person who has cancelled.
                if !Task.isCancelled { cancel() }
                return
            }
            // The web view would end.
            let isShort = answer.utf8.count <= PageMessage.maximumBytes
            view.send(.answerMessage(id: id, answer: isShort ? answer : PageMessage.tooLarge))
        }
    }

    private func error(for reason: WebViewEvent.ClosedReason) -> (any Error)? {
        if let failure = failure.withLock({ $0 }) { return failure }
        return switch reason {
        case .close: nil
        case .cancel, .inputEnded: SignInError(.cancelled, "the sign-in was cancelled")
        case .window, .page: isClosing.withLock { $0 } ? nil : SignInError.windowClosed
        case .timeLimit: SignInError.timedOut(after: page.limit)
        }
    }
}

extension WebViewOpening {
    fileprivate init(_ page: SignInPage, proxy: Secret?, _ shared: SharedCookies?, _ flow: SpecialURLFlow?) {
        url = page.url.description
        redirectURIs = [page.redirect.text] + (flow?.redirectURIs ?? [])
        allowedOrigins = (flow?.origins ?? page.origins).map(\.pageOrigin)
        specialURLs = flow != nil
        timeLimitSeconds = min(max(1, page.limit.components.seconds), 86_400)
        title = "Sign in at \(page.url.origin.host)"
        self.proxy = proxy
        if let shared {
            cookies = shared.given
            captureCookies = WebViewCookieSelection(host: shared.key.host, names: shared.names)
        }
        pageMessages = page.messages
    }
}

extension UserAgentEvent {
    /// Nil for an event that is not about a page's way.
    init?(_ event: WebViewEvent) {
        // URLs are at most 16 KiB in the protocol.
        func printable(url: String) -> String { PageText.printable(url, limit: 2000) }
        switch event {
        case .loadStarted(let url): self = .loadStarted(url: printable(url: url))
        case .loadFinished(let url): self = .loadFinished(url: printable(url: url))
        case .loadFailed(let url, let code, let message):
            let message = PageText.printable(message)
            let reason = code.clause.map { "\($0) (\(message))" } ?? message
            self = .loadFailed(url: printable(url: url), reason: reason)
        case .navigationRefused(let url, let why):
            self = .navigationRefused(url: printable(url: url), reason: why.clause, hint: why.hint)
        default: return nil
        }
    }
}

extension SignInPage {
    /// Whether the window shows pages of the host, which then may set cookies. Its program writes an IPv6 address in
    /// another form, and shares no cookies of it.
    fileprivate func mayShow(_ host: String) -> Bool {
        origins.contains { $0.scheme == .https && $0.host == host } && !host.utf8.contains(UInt8(ascii: ":"))
    }
}

extension WebViewEvent.FailureCode {
    /// Whether the machine lacks something that the web view needs.
    fileprivate var isMissingPart: Bool {
        switch self {
        case .noDisplay, .noBubblewrap, .noUserNamespaces, .noTrustStore: true
        case .noCABundle, .protocolError, .dataFolder, .cookies, .webProcess: false
        }
    }
}

extension WebViewEvent.LoadFailure {
    /// Nil if the message says all.
    fileprivate var clause: String? {
        switch self {
        case .certificate: "its certificate does not verify"
        case .network: "there was no response"
        case .stopped: "the load was stopped"
        case .proxy, .other: nil
        }
    }
}

extension WebViewEvent.Refusal {
    /// The end of a sentence about a page to which the window does not go.
    fileprivate var clause: String {
        switch self {
        case .origin: "it is not one of the profile's hosts"
        case .insecure: "it is plain http"
        case .scheme: "its scheme is not that of the redirect URI"
        case .specialURL: "it is for device enrolment"
        case .newWindow: "it is to have a window of its own"
        case .userName: "its URL has a user name"
        case .download: "it is a file"
        case .malformed: "its URL is malformed"
        }
    }
}

extension WebViewEvent.Refusal {
    fileprivate var hint: String? {
        switch self {
        case .origin:
            "if the organisation uses that host, its profile must name it in \"navigation_hosts\""
        case .specialURL:
            "to let the pages enrol this device, use --special-urls, or ask for a profile with \"special_urls\""
        case .scheme:
            "if the organisation's app uses that address, the profile must name it as \"redirect_uri\""
        case .insecure, .newWindow, .userName, .download, .malformed: nil
        }
    }
}

extension SignInError {
    static let windowClosed = SignInError(
        .cancelled, "the window was closed before the sign-in was complete; nothing was changed")

    static let tooManyMessages = SignInError(
        .provider, "the provider's page asks more than \(PageDialogue.maximumMessages) times",
        hint: "use another --user-agent, or ask who administers the provider")

    static func protocolFault(_ reason: String) -> SignInError {
        SignInError(
            .environment, "the web view does not follow its protocol: \(reason)",
            hint: "install the \(WebViewProgram.name) that belongs to this version")
    }
}
