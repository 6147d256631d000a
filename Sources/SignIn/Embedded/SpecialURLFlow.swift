// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignDeviceManagement
import CountersignOAuth
import Synchronization

/// The special URLs of one sign-in: takes the reports of the window and its proxy, asks the controller, and has the
/// window carry out the decision. It handles them one by one, in the order of the reports; while a decision takes time,
/// because a broker works, only later special URLs wait.
final class SpecialURLFlow: Sendable {
    /// The operations of the window that are used here.
    struct View: Sendable {
        let load: @Sendable (_ url: String, _ headers: [AdditionalHeader]) -> Void
        /// The window was sent to a URL that may be the redirect URI.
        let redirected: @Sendable (String) -> Void
        /// Ends the sign-in.
        let fail: @Sendable (any Error) -> Void
    }

    private enum Input: Sendable {
        case response(PageResponse)
        /// With the response that has led to the URL.
        case special(SpecialPage)
        case decided(WebviewAction)
        case callback(String, session: Int)
        case sessionFailed(any Error, session: Int)
    }

    /// A special URL that was met, with its number and the response that has led to it.
    private struct SpecialPage: Sendable {
        let url: String
        let number: Int
        let cause: PageResponse?
    }

    /// How many special URLs a sign-in may have: the page can cause them without end.
    static let maximumURLs = 64
    /// How many reports can wait.
    static let maximumInputs = 256

    /// More redirect URIs for the window to report: those by which a page asks for another browser or a registration.
    let redirectURIs: [String]
    /// Where the window's pages may be.
    let origins: [Origin]
    private let page: SignInPage
    private let rules: SpecialURLRules
    private let handler: any InteractiveWebviewHandler
    private let controller: InteractiveWebviewController
    private let inputs: AsyncStream<Input>
    private let input: AsyncStream<Input>.Continuation
    /// The decision in progress, and the special URLs that wait for it.
    private let decisions = Mutex<(task: Task<Void, Never>?, waiting: [SpecialPage])>((nil, []))
    private let session = Mutex<(number: Int, task: Task<Void, Never>?)>((0, nil))
    private let counts = Mutex<(urls: Int, completed: Set<String>, external: Int)>((0, [], 0))
    /// Whether the sign-in has its result. Earlier reports that are still pending are then dropped.
    private let isOver = Mutex(false)
    private let hasRefusedHandOff = Mutex(false)
    /// Whether there were more reports than can wait.
    private let isFlooded = Mutex(false)
    /// The responses to the window's own pages.
    private let responses = Mutex(PageResponses())
    /// The page of the second window that is open.
    private let openPage = Mutex<String?>(nil)

    /// How often the desktop may be asked to open something that is not a page for the window.
    private static let maximumExternal = 4
    /// How often the sign-in is repeated because a special URL says that a step is complete, each once.
    private static let maximumRepetitions = 4

    init(
        _ support: SpecialURLSupport, _ page: SignInPage, environment: [String: String],
        openSession: @escaping @Sendable (AuthenticationSessionRequest) async throws -> String
    ) {
        self.page = page
        let hosts = support.settings.hosts
        origins = support.origins(of: page)
        let isPlain = page.origins.contains { $0.scheme == .http }
        var rules = SpecialURLRules(
            pageOrigins: page.origins + hosts, handoffOrigins: support.settings.handoffHosts, redirect: page.redirect,
            requestState: page.state ?? "", transport: isPlain ? .secureOrLoopback : .secure)
        rules.headers = support.settings.headers
        rules.parameters = support.settings.parameters.map { ($0.name, $0.value) }
        rules.hasBroker = support.broker != nil
        self.rules = rules
        redirectURIs = page.redirect.specialURIs
        let own = SignInWebviewHandler(
            rules: rules, support: support, environment: environment, openSession: openSession)
        handler = support.handler?(own) ?? own
        controller = InteractiveWebviewController(handler, rules)
        (inputs, input) = AsyncStream<Input>.makeStream(bufferingPolicy: .bufferingOldest(Self.maximumInputs))
    }

    // MARK: Reports

    /// Whether a redirect that the window reports is a special URL.
    func isSpecial(_ url: String) -> Bool {
        redirectURIs.contains { text in (try? RedirectURI(text))?.query(of: url) != nil }
    }

    /// The window wants to go to a special URL.
    func met(_ url: String) {
        let count = counts.withLock { counts in
            counts.urls += 1
            return counts.urls
        }
        // Now, because the window may get other responses before the URL is handled.
        let cause = responses.withLock { $0.cause(of: url) }
        if count <= Self.maximumURLs + 1 { add(.special(SpecialPage(url: url, number: count, cause: cause))) }
    }

    func received(_ response: PageResponse) {
        guard origins.contains(response.origin) else { return }
        responses.withLock { $0.add(response) }
        add(.response(response))
    }

    private func add(_ report: Input) {
        guard case .dropped = input.yield(report) else { return }
        isFlooded.withLock { $0 = true }
        input.finish()
    }

    /// The sign-in has its result, or the window is closed.
    func end() {
        isOver.withLock { $0 = true }
        input.finish()
        decisions.withLock { $0.task }?.cancel()
    }

    /// Returns after ``end()``, when the second window is closed, too.
    func run(_ view: View) async {
        for await input in inputs where !isOver.withLock({ $0 }) {
            switch input {
            case .response(let response):
                await perform(await controller.responseReceived(response), view)
            case .special(let special): decide(special, view)
            case .decided(let action):
                decisions.withLock { $0.task = nil }
                await perform(action, view)
                decideNext(view)
            case .callback(let url, let number):
                guard session.withLock({ $0.number }) == number else { break }
                sessionEnded()
                await navigate(to: url, view)
            case .sessionFailed(let error, let number):
                guard session.withLock({ $0.number }) == number else { break }
                sessionEnded()
                view.fail(error)
            }
        }
        if isFlooded.withLock({ $0 }), !isOver.withLock({ $0 }) { view.fail(Self.tooMany) }
        let decision = decisions.withLock { $0.task }
        decision?.cancel()
        await decision?.value
        await controller.end()
        let task = session.withLock { session in
            session.number += 1
            return session.task
        }
        task?.cancel()
        await task?.value
    }

    // MARK: Actions

    private func decide(_ special: SpecialPage, _ view: View) {
        decisions.withLock { $0.waiting.append(special) }
        decideNext(view)
    }

    /// Begins the decision about the next special URL, unless there is one in progress. Its action arrives as a report.
    private func decideNext(_ view: View) {
        let isTooMuch = decisions.withLock { decisions in
            guard decisions.task == nil, !decisions.waiting.isEmpty, !isOver.withLock({ $0 }) else { return false }
            let next = decisions.waiting.removeFirst()
            guard next.number <= Self.maximumURLs else { return true }
            decisions.task = Task { add(.decided(await action(for: next))) }
            return false
        }
        if isTooMuch { view.fail(Self.tooMany) }
    }

    private func action(for next: SpecialPage) async -> WebviewAction {
        let url = next.url
        let special = try? SpecialURL(url)
        let path = url.prefix { $0 != "?" && $0 != "#" }
        let kind = isSpecial(url) ? path.split(separator: "/").last ?? "" : "\(url.prefix { $0 != ":" }): (malformed)"
        page.report(.specialURL(special?.subject ?? PageText.printable(String(kind))))
        let before = await controller.state
        let action = await controller.action(for: url, after: next.cause)
        let state = await controller.state
        if state.brtAttemptCount > before.brtAttemptCount, !state.brtAcquired {
            page.report(.unavailable("there is no refresh token of the broker"))
        }
        if let failure = state.brokerFailure, before.brokerFailure == nil {
            page.report(.unavailable("the identity broker does not go on with the sign-in: \(failure.detail)"))
        }
        guard case .openExternalBrowser(let target, keepsView: true) = action else { return action }
        return await isConfirmed(target) ? action : .noop
    }

    /// Whether the person agrees to a hand-off. After a refusal, no other question follows: the page can ask without
    /// end.
    private func isConfirmed(_ url: String) async -> Bool {
        guard !hasRefusedHandOff.withLock({ $0 }) else { return false }
        if await handler.confirmsHandOff(of: url) { return true }
        hasRefusedHandOff.withLock { $0 = true }
        page.report(.unavailable("no other program was opened, because nobody has agreed to that"))
        return false
    }

    private func perform(_ action: WebviewAction, _ view: View) async {
        switch action {
        case .noop: break
        case .loadRequest(let request): load(request.url, request.headers, view)
        case .openAuthenticationSession(let request): await open(request, view)
        case .openExternalBrowser(let url, let keepsView):
            let count = counts.withLock { counts in
                counts.external += 1
                return counts.external
            }
            guard count <= Self.maximumExternal else { return view.fail(Self.tooMany) }
            page.report(.handedOff(url: PageText.printable(url, limit: 16 << 10)))
            do {
                try await handler.openExternalBrowser(url)
            } catch {
                let reason = (error as? SignInError)?.detail ?? "the browser could not be opened"
                guard keepsView else { return view.fail(error) }
                page.report(.unavailable(reason))
            }
            if !keepsView {
                view.fail(SignInError(.cancelled, "the provider's page has sent you to your browser, to go on there"))
            }
        case .complete(let url): complete(url, view)
        case .fail(let error): view.fail(error)
        case .dismiss:
            view.fail(SignInError(.transferred, "the identity broker of this machine goes on with the sign-in"))
        }
    }

    private static let tooMany = DeviceManagementError(
        .malformed, "the provider's pages ask for device management without end",
        hint: "ask the organisation's administrators; nothing more was opened")

    private func load(_ url: EndpointURL, _ headers: [AdditionalHeader], _ view: View) {
        if let fault = fault(in: url, headers) { return view.fail(fault) }
        view.load(url.description, headers)
    }

    /// A page or fields that a window would refuse.
    private func fault(in url: EndpointURL, _ headers: [AdditionalHeader]) -> DeviceManagementError? {
        guard origins.contains(url.origin) else {
            return DeviceManagementError(.foreignPage, "\(url.origin) is not one of the profile's hosts")
        }
        guard headers.count <= SpecialURLSettings.maximumRequestHeaders,
            headers.reduce(url.description.utf8.count, { $0 + $1.name.utf8.count + $1.value.utf8.count })
                <= SpecialURLSettings.maximumRequestBytes
        else { return DeviceManagementError(.malformed, "the page asks for a request that is too large") }
        for header in headers {
            guard SpecialURLSettings.isName(header.name) else {
                return DeviceManagementError(
                    .malformed, "\(PrintableText.quote(header.name)) is not a field that can be added to a request")
            }
            guard header.value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                return DeviceManagementError(.malformed, "the value of \(header.name) is not printable ASCII")
            }
        }
        return nil
    }

    /// A session that is still open is closed.
    private func open(_ request: AuthenticationSessionRequest, _ view: View) async {
        if let fault = fault(in: request.url, request.headers) { return view.fail(fault) }
        // A page that waits for the second window may be loaded again and again.
        let address = request.url.description
        guard openPage.withLock({ $0 }) != address else { return }
        let isTooMuch = counts.withLock { counts in
            counts.urls += 1
            return counts.urls > Self.maximumURLs
        }
        guard !isTooMuch else { return view.fail(Self.tooMany) }
        if openPage.withLock({ $0 }) != nil { sessionEnded() }
        openPage.withLock { $0 = address }
        let former = session.withLock { $0.task }
        former?.cancel()
        await former?.value
        page.report(
            .sessionOpened(
                url: PageText.printable(request.url.withoutQuery), installsProfile: request.purpose == .installProfile))
        session.withLock { session in
            session.number += 1
            let number = session.number
            session.task = Task {
                do {
                    add(.callback(try await controller.run(request), session: number))
                } catch {
                    add(.sessionFailed(error, session: number))
                }
            }
        }
    }

    private func sessionEnded() {
        openPage.withLock { $0 = nil }
        page.report(.sessionEnded)
    }

    /// The next navigation of the window, which a second window has led to.
    private func navigate(to url: String, _ view: View) async {
        if rules.redirect.query(of: url) != nil { return view.redirected(url) }
        if isSpecial(url) || (try? SpecialURL(url)) != .some(nil) {
            let number = counts.withLock { $0.urls }
            let cause = responses.withLock { $0.cause(of: url) }
            return decide(SpecialPage(url: url, number: number, cause: cause), view)
        }
        guard let target = try? EndpointURL(String(url.prefix { $0 != "#" }), "the callback", rules.transport) else {
            return page.report(.navigationRefused(url: "", reason: "it cannot be used"))
        }
        load(target, [], view)
    }

    private func complete(_ url: String, _ view: View) {
        guard rules.redirect.query(of: url) == nil else { return view.redirected(url) }
        // A device may have to be enrolled, and then to comply. The same once more would be a loop.
        let kind = (try? SpecialURL(url))?.host.lowercased() ?? ""
        let isLoop = counts.withLock { counts in
            let isNew = counts.completed.insert(kind).inserted
            return !isNew || counts.completed.count > Self.maximumRepetitions
        }
        guard !isLoop else {
            return view.fail(
                DeviceManagementError(
                    .enrollmentFailed, "the provider asks for the enrolment of this device again and again",
                    hint: "ask the organisation's administrators whether the device is enrolled there"))
        }
        view.load(page.url.description, [])
    }
}

extension RedirectURI {
    /// Those by which a page asks for another browser, returns from it, or asks for a registration of the device.
    var specialURIs: [String] {
        let registration = appending(segment: "msauth")
        let all = [
            appending(segment: "switch_browser"), appending(segment: "switch_browser_resume"),
            registration?.appending(segment: "wpj"), registration?.appending(segment: "upgradeReg"),
        ]
        return all.compactMap { $0?.text }
    }
}

extension SpecialURLSupport {
    /// Where the pages of both windows may be, each once.
    func origins(of page: SignInPage) -> [Origin] {
        (settings.hosts + settings.handoffHosts).reduce(into: page.origins) { origins, origin in
            if !origins.contains(origin) { origins.append(origin) }
        }
    }
}

extension EndpointURL {
    fileprivate var withoutQuery: String { "\(origin.scheme.rawValue)://\(origin.authority)\(path)" }
}

extension SignInPage {
    /// The `state` of the authorization request; nil if it is not in the address.
    fileprivate var state: String? {
        guard let query = url.query, let pairs = FormEncoding.decode(query.utf8) else { return nil }
        return pairs.first { $0.name == "state" }?.value
    }
}
