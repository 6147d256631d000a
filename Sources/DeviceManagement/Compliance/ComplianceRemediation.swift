// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// One remediation: asks the service to register, enrol and apply the policy, has its page opened unless the
/// remediation is silent, and asks for the status until there is one. Events and actions are as in ``SignIn``; it
/// always ends with an outcome, and never throws.
package struct ComplianceRemediation: Sendable {
    package enum Action: Sendable, Equatable {
        /// Send the request; report ``ComplianceRemediation/received(_:now:)``.
        case send(ComplianceRequest)
        /// Open the page in the person's agent; report ``ComplianceRemediation/opened(now:)``. Once at most.
        case open(EndpointURL)
        /// Wait; report ``ComplianceRemediation/waited(now:)``.
        case wait(seconds: Int64)
        case finish(ComplianceOutcome)
    }

    /// The outcome of a request.
    package enum Response: Sendable {
        /// With the media type in lower case.
        case reply(status: Int, mediaType: String?, body: [UInt8])
        /// There was no response. Whether the same request may have one later.
        case failure(String, isTransient: Bool)
    }

    private enum State {
        case idle
        /// Whether the token was sent.
        case asking(withToken: Bool)
        case opening(Secret, interval: Int64)
        case waiting(Secret, interval: Int64)
        case polling(Secret, interval: Int64)
        /// The person has closed the page; a last poll for the status is under way.
        case closing(Secret)
        case ended(ComplianceOutcome)
    }

    private let service: ComplianceService
    private let account: ComplianceAccount
    private let client: String
    private let isSilent: Bool
    private let verifier: Secret
    /// Nil once the service has refused it.
    private var token: Secret?
    private let languages: String
    private let limit: Int64
    private var deadline: Int64 = 0
    private var state = State.idle
    private var page: EndpointURL?
    private var hasOpened = false
    private var failures = 0

    /// Responses in a row that may fail while a status is awaited.
    private static let maximumFailures = 5
    package static let verifierByteCount = 32

    /// `client` is the profile's client identifier. `token` is the sign-in's access token, if the service takes it.
    /// `randomBytes` are ``verifierByteCount`` bytes. `limit` is in seconds, for all of it.
    package init(
        _ account: ComplianceAccount, at service: ComplianceService, client: String, isSilent: Bool, token: Secret?,
        languages: String, limit: Int64, randomBytes: Secret
    ) {
        self.account = account
        self.service = service
        self.client = client
        self.isSilent = isSilent
        self.token = service.takesAccessToken ? token : nil
        self.languages = languages
        self.limit = limit
        verifier = randomBytes.withBytes { Base64URL.encodeSecret($0) }
    }

    // MARK: Events

    // The program reports each event after the action that asked for it, in one loop that waits for nothing else. No
    // response of a service can make it report another one, so a trap here is a mistake of the program.

    package mutating func start(now: Int64) -> Action {
        guard case .idle = state else { preconditionFailure("a remediation starts once") }
        deadline = now + limit
        return ask(withToken: token != nil)
    }

    package mutating func received(_ response: Response, now: Int64) -> Action {
        switch state {
        case .asking(let withToken):
            // The token may have expired, or may not be for the service. A person can still sign in at the page.
            if withToken, refusesToken(response) { return ask(withToken: false) }
            return judge(response, after: nil, now: now)
        case .polling(let session, let interval):
            // It has expired meanwhile. The verifier proves enough.
            if token != nil, refusesToken(response) { return poll(session, interval) }
            return judge(response, after: (session, interval), now: now)
        case .closing(let session):
            if token != nil, refusesToken(response) { return askOnceMore(session) }
            return judge(response, after: nil, isClosed: true, now: now)
        case .ended(let outcome): return .finish(outcome)
        case .idle, .opening, .waiting: preconditionFailure("no request was sent")
        }
    }

    /// The page is open, or was handed to another program.
    package mutating func opened(now: Int64) -> Action {
        switch state {
        case .opening(let session, let interval): return wait(session, interval, now: now)
        case .ended(let outcome): return .finish(outcome)
        case .idle, .asking, .waiting, .polling, .closing: preconditionFailure("no page was to be opened")
        }
    }

    package mutating func waited(now: Int64) -> Action {
        switch state {
        case .waiting(let session, let interval):
            return poll(session, interval)
        case .ended(let outcome): return .finish(outcome)
        case .idle, .asking, .opening, .polling, .closing: preconditionFailure("nobody waits")
        }
    }

    /// The person has closed the page during a wait. They may have finished, so asks the service once more.
    package mutating func closed() -> Action {
        switch state {
        case .waiting(let session, interval: _): return askOnceMore(session)
        case .ended(let outcome): return .finish(outcome)
        case .idle, .asking, .opening, .polling, .closing: preconditionFailure("nobody waits")
        }
    }

    /// The program has ended the remediation.
    package mutating func cancelled() -> Action { finish(ComplianceOutcome(.userCancelled, page: knownPage)) }

    /// The page cannot be shown here.
    package mutating func notOpened(_ reason: String) -> Action {
        finish(
            ComplianceOutcome(
                .interactionRequired, message: "\(ComplianceStatus.interactionRequired.message) (\(reason))",
                page: knownPage))
    }

    // MARK: Steps

    /// Returns whether the response refuses the token, which is then no longer sent.
    private mutating func refusesToken(_ response: Response) -> Bool {
        guard case .reply(let status, _, _) = response, status == 401 || status == 403 else { return false }
        token = nil
        return true
    }

    private mutating func poll(_ session: Secret, _ interval: Int64) -> Action {
        state = .polling(session, interval: interval)
        return .send(.status(of: session, at: service, verifier: verifier, token: token, languages: languages))
    }

    private mutating func askOnceMore(_ session: Secret) -> Action {
        state = .closing(session)
        return .send(.status(of: session, at: service, verifier: verifier, token: token, languages: languages))
    }

    private mutating func ask(withToken: Bool) -> Action {
        state = .asking(withToken: withToken)
        return .send(
            .remediate(
                account, at: service, client: client, isSilent: isSilent, verifier: verifier,
                token: withToken ? token : nil, languages: languages))
    }

    private mutating func judge(
        _ response: Response, after known: (session: Secret, interval: Int64)?, isClosed: Bool = false, now: Int64
    ) -> Action {
        let reply: ComplianceReply
        switch read(response) {
        case .success(let read): reply = read
        case .failure(let failure):
            // A person who is at the page must not lose it because of one request.
            failures += 1
            if let known, failure.isTransient, failures <= Self.maximumFailures {
                return wait(known.session, known.interval, now: now)
            }
            return finish(
                ComplianceOutcome(
                    failure.status, message: "\(failure.status.message) (\(failure.reason))", page: knownPage))
        }
        failures = 0
        page = reply.page ?? page
        let session = reply.session ?? known?.session
        switch reply.state {
        case .compliant: return finish(outcome(.compliant, reply))
        case .noncompliant: return finish(outcome(.notCompliant, reply))
        case .cancelled: return finish(outcome(.userCancelled, reply))
        case .interactionRequired where isClosed, .pending where isClosed: return cancelled()
        case .interactionRequired:
            guard !isSilent, let session, let page else { return finish(outcome(.interactionRequired, reply)) }
            return openOnce(page, session, now: now, reply)
        case .pending:
            guard let session else {
                return finish(
                    ComplianceOutcome(.serviceFailure, message: "the service names no session to ask about again"))
            }
            // The service may be busy with the device itself, and name a page on which the person can help.
            guard !isSilent, let page = reply.page else { return wait(session, reply.interval, now: now, reply) }
            return openOnce(page, session, now: now, reply)
        }
    }

    private mutating func openOnce(
        _ page: EndpointURL, _ session: Secret, now: Int64, _ reply: ComplianceReply
    ) -> Action {
        guard !hasOpened else { return wait(session, reply.interval, now: now, reply) }
        hasOpened = true
        state = .opening(session, interval: reply.interval)
        return .open(page)
    }

    private struct Failure: Error {
        let status: ComplianceStatus
        let reason: String
        let isTransient: Bool
    }

    private func read(_ response: Response) -> Result<ComplianceReply, Failure> {
        switch response {
        case .failure(let reason, let isTransient):
            return .failure(
                Failure(
                    status: isTransient ? .networkFailure : .serviceFailure, reason: reason, isTransient: isTransient))
        case .reply(let status, let mediaType, let body):
            guard status == 200 else {
                let isTransient = status >= 500 || status == 429 || status == 408
                return .failure(
                    Failure(
                        status: .serviceFailure, reason: "it answers with the status \(status)",
                        isTransient: isTransient))
            }
            guard mediaType == "application/json" else {
                return .failure(
                    Failure(status: .serviceFailure, reason: "its reply is not JSON", isTransient: false))
            }
            do throws(DeviceManagementError) {
                return .success(try ComplianceReply(body, from: service))
            } catch {
                return .failure(Failure(status: .serviceFailure, reason: error.detail, isTransient: false))
            }
        }
    }

    private mutating func wait(
        _ session: Secret, _ interval: Int64, now: Int64, _ reply: ComplianceReply? = nil
    ) -> Action {
        guard now + interval <= deadline else {
            return finish(
                ComplianceOutcome(
                    .interactionRequired, title: reply?.title,
                    message: reply?.message ?? "Nobody has completed this within \(limit) seconds.", page: knownPage))
        }
        state = .waiting(session, interval: interval)
        return .wait(seconds: interval)
    }

    private var knownPage: EndpointURL? { page ?? service.page }

    private func outcome(_ status: ComplianceStatus, _ reply: ComplianceReply) -> ComplianceOutcome {
        ComplianceOutcome(
            status, title: reply.title, message: reply.message, page: status == .compliant ? nil : knownPage,
            rules: reply.rules, hasNoPolicy: status != .compliant && reply.hasNoPolicy,
            restarts: status == .compliant && reply.restarts)
    }

    private mutating func finish(_ outcome: ComplianceOutcome) -> Action {
        if case .ended(let outcome) = state { return .finish(outcome) }
        state = .ended(outcome)
        return .finish(outcome)
    }
}
