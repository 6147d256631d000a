// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignDeviceManagement
import CountersignJSON
import CountersignOAuth
import Dispatch
import Synchronization

/// A second window, with a session of its own that it forgets or with that of the first, for pages to which device
/// management sends a person.
struct SystemSession: Sendable {
    let environment: [String: String]
    let page: SignInPage
    let origins: [Origin]
    let door: EmbeddedAgent.Door?
    let installer: (any ProfileInstalling)?
    let signIn: String
    /// The session of the sign-in's window.
    let loan: SessionLoan
    let device: DeviceAnswers
    let closingLimit: DispatchTimeInterval

    /// Shows the page, and returns the URL with the callback's scheme to which the window was sent. Cancelling the task
    /// closes the window.
    func run(_ request: AuthenticationSessionRequest) async throws -> String {
        var taken: SessionLoan.Report?
        if !request.isEphemeral {
            taken = await loan.take()
            guard let taken else { throw CancellationError() }
            reportOmitted(taken)
        }
        var words = [try WebViewProgram.path(in: environment)]
        let isPlain = origins.contains { $0.scheme == .http }
        if let door, !isPlain { words += ["--ca-bundle", door.bundle] }
        if isPlain { words.append("--loopback-http") }
        let folder = request.purpose == .installProfile ? try LockedFolder.delivery(environment) : nil
        let view = try WebViewProcess(words, environment: environment)
        let (profiles, shared) = (ProfileQueue(), taken)
        let result: Result<String, any Error> = await withTaskCancellationHandler {
            do {
                let proxy = isPlain ? nil : door?.proxy
                return .success(try await events(view, request, proxy, shared, folder?.path, profiles))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            profiles.end()
            view.send(.cancel)
            view.kill(after: closingLimit)
        }
        profiles.end()
        _ = await view.end()
        // Not before, because the window writes there.
        folder?.remove()
        return try result.get()
    }

    private func reportOmitted(_ report: SessionLoan.Report) {
        guard report.omitted > 0 else { return }
        page.report(.unavailable("\(report.omitted) cookies are too many or too large to pass to the other window"))
    }

    private func opening(
        _ request: AuthenticationSessionRequest, _ proxy: Secret?, _ shared: SessionLoan.Report?, _ folder: String?
    ) -> WebViewOpening {
        var opening = WebViewOpening(
            url: request.url.description, redirectURIs: [page.redirect.text] + page.redirect.specialURIs,
            allowedOrigins: origins.map(\.pageOrigin),
            timeLimitSeconds: min(max(1, page.limit.components.seconds), 86_400))
        let host = request.url.origin.host
        opening.title = request.purpose == .installProfile ? "Install a profile from \(host)" : "Continue at \(host)"
        opening.proxy = proxy
        opening.headers = request.headers
        opening.cookies = shared?.cookies ?? []
        opening.reportsSession = shared != nil
        opening.specialURLs = true
        opening.announcesDevice = device.isAnnounced
        opening.profileFolder = folder
        return opening
    }

    private func events(
        _ view: WebViewProcess, _ request: AuthenticationSessionRequest, _ proxy: Secret?,
        _ shared: SessionLoan.Report?, _ folder: String?, _ profiles: ProfileQueue
    ) async throws -> String {
        var callback: String?
        while true {
            switch await view.next() {
            case .end: throw SignInError(.environment, "the second window ended unexpectedly")
            case .tooLong: throw SignInError.protocolFault("a line is too long")
            case .line(let line):
                let event: WebViewEvent
                do {
                    event = try WebViewEvent(line)
                } catch {
                    throw SignInError.protocolFault(error.reason)
                }
                switch event {
                case .ready(WebViewEvent.protocolVersion): view.send(.open(opening(request, proxy, shared, folder)))
                case .ready(let version): throw SignInError.protocolFault("its version is \(version)")
                case .specialURL(let url), .redirect(let url):
                    guard callback == nil else { break }
                    guard url.prefix(while: { $0 != ":" }).lowercased() == request.callbackScheme else {
                        page.report(.navigationRefused(url: "", reason: "it is not the callback of the second window"))
                        break
                    }
                    callback = url
                    view.send(.close)
                    view.kill(after: closingLimit)
                case .deviceChallenge(let url):
                    if callback == nil { view.send(try device.answer(to: url)) }
                case .session(let cookies, let omitted):
                    guard let shared else { break }
                    let report = SessionLoan.Report(cookies: cookies, omitted: omitted)
                    reportOmitted(report)
                    loan.giveBack(report, taken: shared)
                case .profile(let url, let content):
                    let host = (try? EndpointURL(url, "the profile", .secureOrLoopback))?.origin ?? request.url.origin
                    deliver(content, from: host.authority, to: view, profiles)
                case .closed(let reason):
                    // A page may close its window when it has delivered a profile, and the question about it stays.
                    if reason != .page, callback == nil { profiles.end() }
                    let isInstalled = await profiles.isInstalled()
                    if let failure = profiles.failure { throw failure }
                    if let callback { return callback }
                    // The person has finished when the profile is installed, whether or not the page continues.
                    if isInstalled, reason == .window || reason == .page { return Self.installed }
                    throw Self.error(for: reason, page.limit)
                case .failed(_, let sentence, let remedy):
                    throw SignInError(
                        .environment, "the second window: \(PageText.printable(sentence))",
                        hint: PageText.printable(remedy))
                default:
                    if let event = UserAgentEvent(event) { page.report(event) }
                }
            }
        }
    }

    /// The URL for which a page has no script if the profile is all that the window shows.
    private static let installed = "msauth://profileInstalled"

    private static func error(for reason: WebViewEvent.ClosedReason, _ limit: Duration) -> SignInError {
        switch reason {
        case .timeLimit: .timedOut(after: limit)
        case .close, .cancel, .inputEnded, .window, .page: .windowClosed
        }
    }

    /// Has the profile installed, and shows the result in the window. The window's events continue meanwhile. A profile
    /// that is not installed ends the session, regardless of the page's later reports.
    private func deliver(_ content: Secret, from host: String, to view: WebViewProcess, _ profiles: ProfileQueue) {
        guard let installer else {
            return refuse(Self.cannotInstall, view, profiles)
        }
        let sentence = "A configuration profile has arrived from \(host). Countersign asks about it in the terminal."
        view.send(.showMessage(sentence))
        profiles.add { [page, signIn] in
            do {
                guard let document = content.utf8Text.flatMap({ Base64.decode($0) }) else {
                    throw SignInError.protocolFault("a profile is not in Base64")
                }
                let sentence = try await installer.install(document, from: host, for: signIn)
                page.report(.profileInstalled(sentence))
                view.send(.showMessage("The profile was installed. \(PageText.printable(sentence))"))
                return true
            } catch {
                let reason = PageText.printable((error as? any CodedError)?.detail ?? "it failed")
                // For a closing window, its own reason counts.
                guard !Task.isCancelled else { return false }
                refuse(reason, view, profiles)
                return false
            }
        }
    }

    private func refuse(_ reason: String, _ view: WebViewProcess, _ profiles: ProfileQueue) {
        profiles.fail(
            DeviceManagementError(
                .enrollmentFailed, "the configuration profile was not installed: \(reason)",
                hint: "sign in again, and install the profile that the provider requires"))
        page.report(.profileNotInstalled(reason: reason))
        view.send(.showMessage("The profile was not installed: \(reason)."))
        view.send(.cancel)
        view.kill(after: closingLimit)
    }

    static let cannotInstall = "this version cannot install configuration profiles"
}

/// The profiles of one window, which are installed one after the other.
private final class ProfileQueue: Sendable {
    private let state = Mutex<(tasks: [Task<Bool, Never>], hasEnded: Bool)>(([], false))

    private let firstFailure = Mutex<DeviceManagementError?>(nil)

    /// Why a profile was not installed.
    var failure: DeviceManagementError? { firstFailure.withLock { $0 } }

    func fail(_ error: DeviceManagementError) { firstFailure.withLock { $0 = $0 ?? error } }

    func add(_ install: @escaping @Sendable () async -> Bool) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            let former = state.tasks.last
            state.tasks.append(
                Task {
                    let wasInstalled = await former?.value ?? false
                    guard !Task.isCancelled else { return wasInstalled }
                    return await install() || wasInstalled
                })
        }
    }

    /// Whether one was installed. Waits for those in progress.
    func isInstalled() async -> Bool { await state.withLock { $0.tasks.last }?.value ?? false }

    /// Cancels those in progress, and begins no other.
    func end() {
        let tasks = state.withLock { state in
            state.hasEnded = true
            return state.tasks
        }
        for task in tasks { task.cancel() }
    }
}
