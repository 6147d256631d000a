// SPDX-License-Identifier: Apache-2.0

import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import FoundationEssentials
import Synchronization

/// Has the policies of organisations applied on this device, so that their providers issue tokens.
///
/// While a device does not comply, no challenge of the sign-in is answered. Remediations run one at a time: another
/// account waits, and a call for an account that already waits or runs gets the result of that run.
public final class ComplianceManager: Sendable {
    private let signIns: SignIns
    private let delegate: (any ComplianceDelegate)?
    private let languages: String
    private let queue = Mutex(Queue())

    private struct Queue {
        /// Those that wait or run, by account; a silent one does not stand in for one that may ask a person.
        var runs: [Key: Run] = [:]
        var last: Task<Void, Never>?
        /// Tells callers and runs apart.
        var count = 0
    }

    private struct Run {
        let number: Int
        let task: Task<Ending, any Error>
        var callers: [Int: Caller] = [:]
    }

    private typealias Caller = CheckedContinuation<Told, any Error>

    /// The result for a caller. The first caller of a run notifies the delegate.
    private struct Told {
        let ending: Ending
        let isFirst: Bool
    }

    private struct Key: Hashable {
        let account: String
        let isSilent: Bool
    }

    private struct Ending {
        let result: ComplianceResult
        let restarts: Bool
    }

    /// `languages` are those of the person, best first, such as `de-CH`; by default, those of the process's locale.
    public init(_ signIns: SignIns, delegate: (any ComplianceDelegate)? = nil, languages: [String]? = nil) {
        self.signIns = signIns
        self.delegate = delegate
        self.languages =
            languages.map { $0.filter(Self.isTag).joined(separator: ", ") }.flatMap { $0.isEmpty ? nil : $0 }
            ?? PreferredLanguages.field(in: signIns.environment)
    }

    /// RFC 5646, so that nothing else gets into the request.
    private static func isTag(_ text: String) -> Bool {
        (1...35).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- UInt8(ascii: "0") < 10 || $0 == UInt8(ascii: "-")
            }
    }

    /// Registers, enrols and applies the policy for an account in one call, and then gets its sign-in a new token.
    ///
    /// `accountID` is the part of the `homeAccountId` before the dot, the name of the sign-in, or
    /// ``ChallengeError/accountID`` of an enrollment that requires a policy first. `silent`: no page is
    /// opened; if a person has something to do, the status is
    /// ``ComplianceResult/Status-swift.enum/interactionRequired``, and the caller decides whether to call this again,
    /// not silently. `agent` shows the page. The result also goes to the delegate, which may have the enrolment wiped.
    ///
    /// Throws ``ChallengeError``: `signInMissing` if there is no sign-in of that account whose profile names a
    /// compliance service, `userAgentFailed`, and the codes of the home and the vault. Throws `CancellationError` at
    /// once if the task is cancelled. The remediation continues as long as another call waits for its result; otherwise
    /// its page is closed, and the delegate is not notified.
    public func remediate(
        accountID: String, silent: Bool, with agent: SignInAgent = .automatic
    ) async throws -> ComplianceResult {
        let key = Key(account: accountID, isSilent: silent)
        let told = try await result(of: key, with: agent)
        // Not in the queue's turn: the delegate may remediate again, and would wait for itself.
        if told.isFirst {
            if told.ending.restarts { await delegate?.saveState(before: told.ending.result) }
            await delegate?.remediated(told.ending.result)
            await wipe(after: told.ending.result)
        }
        try Task.checkCancellation()
        return told.ending.result
    }

    /// If there is no token and the delegate wants it.
    private func wipe(after result: ComplianceResult) async {
        switch result.status {
        case .compliant, .interactionRequired: return
        case .notCompliant, .networkFailure, .serviceFailure, .userCancelled: break
        }
        guard let delegate, await delegate.shouldWipe(after: result) else { return }
        // Wipes even if the caller has stopped waiting: the delegate has decided.
        await Task { [signIns] in
            await ComplianceWipe(signIn: result.signIn, accountID: result.accountID, days: nil).perform(for: delegate) {
                await signIns.wipe(result.signIn)
            }
        }.value
    }

    /// The calls that wait for a result.
    var callerCount: Int { queue.withLock { $0.runs.values.reduce(0) { $0 + $1.callers.count } } }

    /// Joins the run of that key, or begins one.
    private func result(of key: Key, with agent: SignInAgent) async throws -> Told {
        let caller = queue.withLock { queue in
            queue.count += 1
            return queue.count
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.withLock { queue in
                    // An earlier cancellation has found no caller.
                    guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                    if queue.runs[key] == nil { queue.runs[key] = begin(key, with: agent, in: &queue) }
                    queue.runs[key]?.callers[caller] = continuation
                }
            }
        } onCancel: {
            giveUp(caller, of: key)
        }
    }

    private func begin(_ key: Key, with agent: SignInAgent, in queue: inout Queue) -> Run {
        let before = queue.last
        queue.count += 1
        let number = queue.count
        let task = Task { [self] in
            await before?.value
            try Task.checkCancellation()
            return try await run(key.account, silent: key.isSilent, agent)
        }
        queue.last = Task { [self] in finish(key, number, await task.result) }
        return Run(number: number, task: task)
    }

    /// Tells the callers of a run how it has ended.
    private func finish(_ key: Key, _ number: Int, _ result: Result<Ending, any Error>) {
        let callers = queue.withLock { queue in
            // Another run may have taken the place of one without callers.
            guard let run = queue.runs[key], run.number == number else { return [Int: Caller]() }
            queue.runs[key] = nil
            return run.callers
        }
        for (index, caller) in callers.sorted(by: { $0.key < $1.key }).enumerated() {
            caller.value.resume(with: result.map { Told(ending: $0, isFirst: index == 0) })
        }
    }

    /// A caller has stopped waiting. Ends a run without callers.
    private func giveUp(_ caller: Int, of key: Key) {
        let (continuation, task) = queue.withLock { queue in
            guard let continuation = queue.runs[key]?.callers.removeValue(forKey: caller) else {
                return (Caller?.none, Task<Ending, any Error>?.none)
            }
            guard let run = queue.runs[key], run.callers.isEmpty else { return (continuation, nil) }
            queue.runs[key] = nil
            return (continuation, run.task)
        }
        task?.cancel()
        continuation?.resume(throwing: CancellationError())
    }

    private func run(_ accountID: String, silent: Bool, _ agent: SignInAgent) async throws -> Ending {
        let missing = ChallengeError(
            .signInMissing, "there is no sign-in of this account with a compliance service",
            hint: "list them with `countersign compliance status`")
        let found = try await signIns.vault.withOperations(creates: false) { vault -> ListedSignIn? in
            guard let vault else { return nil }
            let all = try vault.perform(ListSignIns()).filter { $0.compliance != nil }
            return all.first { $0.compliance?.account == accountID } ?? all.first { $0.name == accountID }
        }
        guard let found, let text = found.profileText else {
            guard let plan = signIns.waitingForPolicy.withLock({ $0[accountID] }) else { throw missing }
            return try await remediate(plan, accountID, silent: silent, agent)
        }
        let plan: SignInPlan
        do {
            plan = try SignInPlan(SignInProfile(Array(text.utf8)), from: found.source, name: found.name)
        } catch {
            throw ChallengeError(signingIn: error)
        }
        let pages = Pages(plan.profile, show: try show(for: plan, in: agent))
        let operation = RemediateCompliance(
            name: found.name, isSilent: silent, languages: languages,
            seconds: ComplianceFlow.usualLimit.components.seconds)
        do {
            let report = try await signIns.vault.withOperations(
                on: signIns.remediations, creates: false, pageEnd: { pages.end },
                report: { progress in
                    if case .pageToOpen(let url) = progress { pages.open(url) }
                }
            ) { vault -> ComplianceReport in
                guard let report = try vault?.perform(operation).done else { throw missing }
                return report
            }
            await pages.close()
            if let failure = pages.failure { throw failure }
            return ending(report, accountID, found.name)
        } catch {
            await pages.close()
            throw error
        }
    }

    /// Before the first token: there is no stored sign-in yet.
    private func remediate(
        _ plan: SignInPlan, _ accountID: String, silent: Bool, _ agent: SignInAgent
    ) async throws -> Ending {
        let profile = plan.profile
        guard
            let flow = ComplianceFlow(
                profile, client: try signIns.client(), languages: languages, now: ChallengeController.now)
        else { throw ChallengeError(.profileFaulty, "the profile names no compliance service") }
        let show = try show(for: plan, in: agent)
        let failure = Mutex<ChallengeError?>(nil)
        let watched: ComplianceFlow.Show = { url in
            do {
                try await show(url)
            } catch {
                let converted = ChallengeError(signingIn: error)
                if !Task.isCancelled, error is ChallengeError || converted.code == .userAgentFailed {
                    failure.withLock { $0 = converted }
                }
                throw error
            }
        }
        let outcome = await flow.remediate(
            ComplianceAccount(identifier: nil, user: accountID), token: nil, show: silent ? nil : watched)
        if let error = failure.withLock({ $0 }) { throw error }
        if outcome.status == .compliant { signIns.waitingForPolicy.withLock { $0[accountID] = nil } }
        return ending(ComplianceReport(outcome), accountID, plan.name)
    }

    /// Shows a page of the sign-in's service in the agent. A window's proxy ends with it. Throws ``ChallengeError`` if
    /// the agent cannot be used, or if there is no proxy for it.
    private func show(for plan: SignInPlan, in agent: SignInAgent) throws -> ComplianceFlow.Show {
        let kind: UserAgentKind?
        do {
            kind = try agent.kind(for: plan, environment: signIns.environment)
        } catch {
            throw ChallengeError(signingIn: error)
        }
        return { [signIns] url in
            let window: SignInWindow?
            do {
                window = kind == .embedded ? try await signIns.window(for: plan, sharesSession: false) : nil
            } catch {
                throw ChallengeError(signingIn: error)
            }
            try await SignInWindow.closing(window) {
                // The remediation may have ended meanwhile.
                try Task.checkCancellation()
                let resolved = try agent.resolved(for: plan, environment: signIns.environment, window: window)
                try await ComplianceFlow.show(in: resolved, for: plan.profile, report: { _ in })(url)
            }
        }
    }

    private func ending(_ report: ComplianceReport, _ accountID: String, _ name: String) -> Ending {
        Ending(result: ComplianceResult(report, accountID: accountID, name: name), restarts: report.restarts)
    }

    /// The page of a remediation, in the agent.
    private final class Pages: Sendable {
        private let profile: SignInProfile
        private let show: ComplianceFlow.Show
        private let state = Mutex<(task: Task<Void, Never>?, end: PageEnd?, failure: ChallengeError?)>((nil, nil, nil))

        init(_ profile: SignInProfile, show: @escaping ComplianceFlow.Show) {
            self.profile = profile
            self.show = show
        }

        var end: PageEnd? { state.withLock { $0.end } }
        /// Why the page could not be shown.
        var failure: ChallengeError? { state.withLock { $0.failure } }

        func open(_ text: String) {
            guard let url = try? EndpointURL(text, "the page", profile.transport),
                profile.compliance?.pageOrigins.contains(url.origin) == true
            else { return }
            let task = Task.detached { [self] in
                do {
                    try await show(url)
                } catch {
                    guard !Task.isCancelled else { return }
                    if (error as? SignInError)?.code == .cancelled { return state.withLock { $0.end = .closed } }
                    let reason = Diagnostic.all(in: error)[0].message
                    let failure = (error as? ChallengeError) ?? ChallengeError(.userAgentFailed, reason)
                    state.withLock { ($0.end, $0.failure) = (.failed(reason), failure) }
                }
            }
            state.withLock { $0.task = task }
        }

        func close() async {
            let task = state.withLock { $0.task }
            task?.cancel()
            await task?.value
        }
    }
}

/// The end of a remediation.
public struct ComplianceResult: Sendable, Hashable {
    /// Whether the device complies, or why that is not known. Later versions may add cases, so include a `default` in
    /// a `switch`.
    public enum Status: String, Sendable, Hashable {
        /// A new token was requested.
        case compliant
        /// Show title and message. There is no token.
        case notCompliant
        /// The service cannot be reached.
        case networkFailure
        /// The service does not answer as it should.
        case serviceFailure
        /// The person has refused, or closed the page.
        case userCancelled
        /// A person has something to do: remediate again, not silently.
        case interactionRequired
    }

    /// As given to ``ComplianceManager/remediate(accountID:silent:with:)``.
    public let accountID: String
    /// The name of the sign-in.
    public let signIn: String
    /// Whether the device complies.
    public let status: Status
    /// For the person, in their language if the service has it; never empty.
    public let title: String
    /// For the person, in their language if the service has it; never empty.
    public let message: String
    /// The page on which the person can make the device comply; nil if unknown.
    public let page: String?
    /// No protection policy is assigned to the account, so that it will not get a token.
    public let hasNoPolicy: Bool
    /// Why there is no new access token although the device complies; nil if there is one.
    public let tokenFailure: String?

    /// Creates a result, for the tests of a delegate.
    public init(
        accountID: String, signIn: String, status: Status, title: String, message: String, page: String? = nil,
        hasNoPolicy: Bool = false, tokenFailure: String? = nil
    ) {
        self.accountID = accountID
        self.signIn = signIn
        self.status = status
        self.title = title
        self.message = message
        self.page = page
        self.hasNoPolicy = hasNoPolicy
        self.tokenFailure = tokenFailure
    }

    init(_ report: ComplianceReport, accountID: String, name: String) {
        self.accountID = accountID
        signIn = name
        status = Status(rawValue: report.status) ?? .serviceFailure
        title = report.title
        message = report.message
        page = report.page
        hasNoPolicy = report.hasNoPolicy
        tokenFailure = report.tokenFailure
    }
}
