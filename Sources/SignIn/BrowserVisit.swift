// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignOAuth
import Dispatch
import Synchronization

/// A person's visit to the provider's pages: the user agent that shows them, and the channels for the redirect. The
/// first redirect that belongs to the sign-in ends the wait. It comes from the agent, through the listener on the
/// loopback interface, or from the person, who pastes it.
final class BrowserVisit: Sendable {
    /// With the port of the listener.
    let redirect: RedirectURI
    private let agent: any UserAgent
    private let profile: SignInProfile
    /// Nil for a redirect URI that is not on the loopback interface.
    private let listener: RedirectListener?
    private let limit: Duration
    private let nextLine: (@Sendable () async -> String?)?
    private let answer: @Sendable (PageMessage) async -> String?
    private let report: @Sendable (SignInEvent) -> Void
    private let showing = Mutex<Task<Void, any Error>?>(nil)
    private let reported = Mutex(0)
    private let record = Mutex(VisitRecord())

    /// How many events of the page are reported, and how many redirects that do not belong to the sign-in: a page or
    /// another process can cause them without end.
    static let maximumReports = 500

    /// Binds the port of a loopback redirect URI, so that no other process can take it once the page is open.
    init(
        _ agent: any UserAgent, _ profile: SignInProfile, limit: Duration, nextLine: (@Sendable () async -> String?)?,
        answer: @escaping @Sendable (PageMessage) async -> String?, report: @escaping @Sendable (SignInEvent) -> Void
    ) throws(SignInError) {
        self.agent = agent
        self.profile = profile
        self.limit = limit
        self.nextLine = nextLine
        self.answer = answer
        self.report = report
        let redirect = profile.redirect
        if let address = redirect.address {
            let bound = try RedirectListener(
                address, .init(refused: { user in report(.connectionRefused(user: user)) }))
            listener = bound
            self.redirect = redirect.bound(toPort: bound.port)
        } else {
            guard agent.notices(redirect) else { throw .unnoticed(redirect) }
            listener = nil
            self.redirect = redirect
        }
    }

    /// Shows the page, and returns after the redirect.
    func redirect(from url: EndpointURL, _ machine: SignIn) async throws -> (SignIn, SignIn.Action) {
        let state = Mutex<(machine: SignIn, action: SignIn.Action?)>((machine, nil))
        let (end, ending) = AsyncThrowingStream<Void, any Error>.makeStream()
        let judge: @Sendable (RedirectMessage) -> RedirectVerdict = { [self] message in
            state.withLock { state in
                guard state.action == nil else { return .foreign }
                switch state.machine.redirected(message) {
                case .ignored(let error):
                    record.withLock { $0.noteIgnored(error.detail, hint: error.hint) }
                    reportOneOfMany(.redirectIgnored(reason: error.detail, hint: error.hint))
                    return .foreign
                case .accepted(let action):
                    state.action = action
                    // Before the wait ends. The listener continues, so that its browser gets the last page.
                    if case .query = message {} else { listener?.end() }
                    ending.finish()
                    if case .fail = action { return .failed }
                    report(.authorized)
                    return .accepted
                }
            }
        }
        report(.page(url))
        show(page(url, at: machine.metadata, judge), ending)
        listener?.start(within: limit, judge: { judge(.query($0)) }) {
            if case .failure(let error) = $0 { ending.finish(throwing: error) }
        }
        let others = [timer(ending), lines(judge)]
        defer { for task in others { task?.cancel() } }
        do {
            for try await _ in end {}
        } catch {
            // The redirect may have arrived first.
            if state.withLock({ $0.action == nil }) { throw record.withLock { $0.explaining(error, profile) } }
        }
        return try state.withLock { state in
            guard let action = state.action else { throw SignInError(.cancelled, "the sign-in was cancelled") }
            return (state.machine, action)
        }
    }

    /// Ends the agent, and waits until it has closed its windows.
    func end() async {
        listener?.end()
        let task = showing.withLock { $0 }
        task?.cancel()
        _ = await task?.result
    }

    /// Waits until the browser has fetched the listener's last page.
    func showLastPage() async {
        guard let listener else { return }
        // On a thread that may block, because the others are few.
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.redirect-end").async {
                listener.finish()
                continuation.resume()
            }
        }
    }

    private func show(_ page: SignInPage, _ ending: AsyncThrowingStream<Void, any Error>.Continuation) {
        showing.withLock { showing in
            showing = Task { [agent] in
                do {
                    try await agent.show(page)
                } catch {
                    ending.finish(throwing: error)
                }
            }
        }
    }

    /// The listener has a timer of its own.
    private func timer(
        _ ending: AsyncThrowingStream<Void, any Error>.Continuation
    ) -> Task<Void, any Error>? {
        guard listener == nil else { return nil }
        return Task { [limit] in
            try await Task.sleep(for: limit)
            ending.finish(throwing: SignInError.timedOut(after: limit))
        }
    }

    private func lines(_ judge: @escaping @Sendable (RedirectMessage) -> RedirectVerdict) -> Task<Void, any Error>? {
        guard let nextLine else { return nil }
        return Task {
            while let line = await nextLine(), case .foreign = judge(.url(line)) {}
        }
    }

    private func page(
        _ url: EndpointURL, at provider: ProviderMetadata?,
        _ judge: @escaping @Sendable (RedirectMessage) -> RedirectVerdict
    ) -> SignInPage {
        var origins: [Origin] = []
        let own = [url.origin, profile.issuer.url.origin]
        for origin in own + (provider?.origins ?? []) + profile.navigationOrigins where !origins.contains(origin) {
            origins.append(origin)
        }
        let messages = profile.pageMessages.map { types in
            PageMessageRules(origins: Set(own.map(\.pageOrigin)).sorted(), types: types)
        }
        return SignInPage(
            url: url, redirect: redirect, origins: origins, limit: limit, messages: messages,
            report: { [self] in noted($0) }, judge: { judge(.url($0)) }, answer: answer)
    }

    private func noted(_ event: UserAgentEvent) {
        record.withLock { $0.note(event) }
        reportOneOfMany(.agent(event))
    }

    private func reportOneOfMany(_ event: SignInEvent) {
        let count = reported.withLock { count in
            count = min(count + 1, Self.maximumReports + 2)
            return count
        }
        if count <= Self.maximumReports { report(event) }
        if count == Self.maximumReports + 1 { report(.agent(.othersOmitted)) }
    }
}

extension Origin {
    /// As a page's `location.origin`: without the default port.
    var pageOrigin: String { "\(scheme.rawValue)://\(authority)" }
}
