// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignSitePolicy
import Dispatch
import Synchronization

/// The authentication of one request, for programs with an HTTP client of their own: a state machine that takes events
/// and returns actions. It does no I/O.
///
/// Report each event, and perform the action that it returns. The documentation of an action names the event that must
/// follow it; any other event results in ``Action/fail(reason:)``. Keep the head of a response until an action decides
/// about it. If the response is not delivered, read and discard its body.
///
/// A call may read files, and wait for a token that a scheme computes on another thread. Do not make it on an event
/// loop.
public struct ChallengeExchange: Sendable {
    /// The next action to perform.
    public enum Action: Equatable, Sendable {
        /// Send the complete request with this `Authorization`, or unchanged. Must be followed by
        /// ``ChallengeExchange/responseReceived(status:challenges:authenticationInfo:nonces:)``.
        case send(Authorization?)
        /// Send the request with this `Authorization`, NTLM's first message, but without its body, and with
        /// `Content-Length: 0` if it has one. Must be followed by
        /// ``ChallengeExchange/responseReceived(status:challenges:authenticationInfo:nonces:)``.
        case sendOpening(Authorization)
        /// Ask ``ChallengeController/handle(_:)``, or the user. Must be followed by
        /// ``ChallengeExchange/dispositionReceived(_:_:)``.
        case ask(AuthenticationChallenge)
        /// Deliver the last response.
        case deliver(Outcome)
        /// Fail: there is no response to deliver. The reason is a short sentence for display.
        case fail(reason: String)
        /// Wait for the final response, because the last one was an interim response.
        case wait
    }

    /// The result of an exchange that has a response to deliver.
    public enum Outcome: Equatable, Sendable {
        /// The response was not a challenge.
        case notChallenged
        /// The server accepted the answer.
        case accepted
        /// The server's 401, unchanged. The error says which check failed.
        case handedBack(ChallengeError)
        /// The server's 401 to the answer. An enrolled credential is not sent there again until it changes.
        case rejected
    }

    /// The expected next event.
    private enum Due {
        case start
        case response
        case disposition
        case nothing
    }

    let controller: ChallengeController
    let origin: Origin
    let rule: SiteRule?
    let isEnabled: Bool
    let permit: BreakerPermit
    private let request: SignedRequest
    private(set) var machine: ExchangeMachine
    private var due = Due.start
    /// Of the last response; 0 before there is one.
    private(set) var status = 0
    /// The space of the last challenge that led to a question.
    private(set) var space: AuthenticationSpace?
    /// The field that was sent last.
    private var sent: AuthorizationField?
    /// The one of the last response (RFC 9449 §9).
    private var nonce: String?
    private var dialogue: (any TokenDialogue)?
    private var channelBinding: ChannelBinding?
    /// The challenge fields of the last response.
    private var challengeFields: [String] = []
    /// The outcome if the controller has no better token for the second question.
    private var unanswered: ExchangeMachine.Outcome?
    private var hasRenewedToken = false
    private var hasAskedForScopes = false

    /// Creates an exchange for a request to `url`, an absolute http or https URL.
    ///
    /// `method` is the request's, as it will be sent: the answer of some schemes depends on it (Digest), and
    /// a site may accept a credential for some methods only.
    /// `serverIsTrusted` is the caller's verdict on an https server's certificate; if false, no challenge is answered.
    /// Throws `invalidProtectionSpace` if the URL does not identify a site. For a site that is not on the list,
    /// challenges are delivered unchanged. Reads changed files of the home on the calling thread.
    public init(
        url: String, method: String = "GET", hasBody: Bool = false, serverIsTrusted: Bool = false,
        controller: ChallengeController
    ) throws(ChallengeError) {
        do throws(HostNameError) {
            let url = try AbsoluteURL(parsing: url)
            origin = url.origin
            request = SignedRequest(method: method, target: url.path)
        } catch {
            throw .invalid(error.detail, "write an absolute URL, such as https://git.corp.example/")
        }
        self.controller = controller
        let siteRequest = SiteRequest(method: request.method, target: ArraySlice(request.target.utf8))
        permit = controller.newPermit(
            for: Breaker.RequestTag(method: request.method, target: request.target), siteRequest)
        isEnabled = controller.isIntegratedAuthenticationEnabled
        let policy = controller.currentPolicy()
        let verdict = policy.sites.verdict(for: origin, request: siteRequest)
        if case .answer(let rule) = verdict { self.rule = rule } else { rule = nil }
        var context = policy.requestContext(to: origin, verdict)
        if !isEnabled { context.site = .no("integrated authentication is switched off") }
        context.originTrusted = serverIsTrusted || origin.scheme == .http
        context.hasBody = hasBody
        context.kdcAttempts = controller.breaker.kdcAttempts
        machine = ExchangeMachine(context)
    }

    /// Whether the next request must use the same connection as the last one. After the end of the exchange: whether
    /// the connection is authenticated as the user, so that it must not be shared with other users.
    public var requiresSameConnection: Bool { machine.requiresSameConnection }

    // MARK: Events

    /// The request is about to be sent.
    public mutating func started() -> Action {
        guard due == .start else { return outOfTurn("started") }
        return run(machine.started())
    }

    /// A TLS connection was established; `serverCertificate` is the server's certificate in DER. NTLM binds its answer
    /// to it (RFC 5929 §4), and does not answer an https server without it. Throws `certificateFaulty` if it is
    /// invalid.
    public mutating func connected(serverCertificate: [UInt8]) throws(ChallengeError) {
        // Discards the binding to an earlier connection.
        channelBinding = nil
        do throws(CertificateError) {
            channelBinding = .tlsServerEndPoint(
                certificateHash: try Certificate(der: serverCertificate).tlsServerEndPointHash)
        } catch {
            throw ChallengeError(
                .certificateFaulty, "the server's certificate cannot be read: \(error.detail)",
                hint: "pass the first certificate of the server's chain in DER", fault: .caller)
        }
    }

    /// The head of a response to the last request was received. `challenges` are the values of its `WWW-Authenticate`
    /// fields, in order.
    ///
    /// `authenticationInfo` are the values of its `Authentication-Info` fields (RFC 7615), with which a server proves
    /// that it knows the password, too (Digest). `nonces` are those of its `DPoP-Nonce` fields (RFC 9449 §9), also of
    /// responses without a challenge.
    public mutating func responseReceived(
        status: Int, challenges: [String], authenticationInfo: [String] = [], nonces: [String] = []
    ) -> Action {
        guard due == .response else { return outOfTurn("responseReceived") }
        if !(100..<200).contains(status) {
            permit.awaitsVerdict = false
            nonce = DPoPNonces.nonce(in: nonces)
            if let nonce { controller.nonces.note(nonce, of: origin) }
        }
        self.status = status
        challengeFields = challenges
        return run(
            machine.responseReceived(
                status: status, challengeFields: challenges.map { ChallengeField($0) },
                informationFields: authenticationInfo, sent: sent))
    }

    /// The challenge was answered, with the result of ``ChallengeController/handle(_:)``. A challenge with a previous
    /// failure asks for another access token, after the server has called that of a sign-in invalid, or requires more
    /// scopes.
    public mutating func dispositionReceived(_ disposition: ChallengeDisposition, _ credential: Credential?) -> Action {
        guard due == .disposition else { return outOfTurn("dispositionReceived") }
        if let unanswered {
            self.unanswered = nil
            if disposition != .useCredential, disposition != .cancelAuthenticationChallenge {
                due = .nothing
                return .deliver(conclude(unanswered))
            }
        }
        switch disposition {
        case .useCredential:
            return run(machine.decisionReceived(answer(with: credential)))
        case .performDefaultHandling:
            let detail = permit.refusal?.detail ?? "nobody answered the challenge"
            return run(machine.decisionReceived(.performDefaultHandling(reason: Refusal(.other, detail))))
        case .rejectProtectionSpace:
            return run(machine.decisionReceived(.rejectProtectionSpace(reason: "the challenge was rejected")))
        case .cancelAuthenticationChallenge:
            return fail("the challenge was cancelled")
        }
    }

    /// The connection was lost before a response. If a status line was read, report
    /// ``responseReceived(status:challenges:authenticationInfo:nonces:)`` instead, even if the rest of the response is
    /// faulty: a status other than 401 says nothing against the credential. Pass true for `requestMayRepeat` if the
    /// request is idempotent (RFC 9110 §9.2.2), or no byte of it was sent.
    public mutating func connectionLost(requestMayRepeat: Bool = false) -> Action {
        guard due == .response || due == .disposition else { return outOfTurn("connectionLost") }
        let mayAnswerAgain = !permit.awaitsVerdict || permit.wasUnanswered()
        permit.awaitsVerdict = false
        return run(machine.connectionLost(requestMayRepeat: requestMayRepeat && mayAnswerAgain))
    }

    /// The last action cannot be performed, because the request's body is no longer available.
    public mutating func replayImpossible() -> Action {
        guard due == .response || due == .disposition, machine.roundsAnswered > 0 || due == .disposition else {
            return outOfTurn("replayImpossible")
        }
        return run(machine.replayImpossible(reason: "the request's body cannot be sent again"))
    }

    private mutating func outOfTurn(_ event: String) -> Action {
        fail("\(event) was reported out of turn")
    }

    // MARK: The machine

    private mutating func run(_ action: ExchangeMachine.Action) -> Action {
        var action = action
        while case .computeToken(let request) = action { action = take(request) }
        switch action {
        case .send(let answer):
            due = .response
            permit.awaitsVerdict = answer != nil
            sent = answer?.field(for: request, inputs)
            guard answer == nil || sent != nil else {
                permit.awaitsVerdict = false
                return run(machine.replayImpossible(reason: "the answer depends on the request's body (qop=auth-int)"))
            }
            return .send(sent.map { Authorization($0) })
        case .sendOpening(let answer):
            due = .response
            guard let opening = answer.field(for: request, inputs) else { return fail("the opening has no token") }
            return .sendOpening(Authorization(opening))
        case .ask(let question):
            permit.offered = question.offered
            if origin.scheme == .https, question.offer.authenticator.usesChannelBinding, channelBinding == nil {
                return fail("the server's certificate was not passed to connected(serverCertificate:)")
            }
            if let decision = ownDecision(question) { return run(machine.decisionReceived(decision)) }
            due = .disposition
            space = question.space
            permit.refusal = nil
            var challenge = AuthenticationChallenge(
                protectionSpace: ProtectionSpace(question.space),
                previousFailureCount: unanswered == nil ? question.previousFailureCount : 1)
            challenge.permit = permit
            return .ask(challenge)
        case .deliver(let outcome):
            if let question = asksAgain(after: outcome) { return question }
            due = .nothing
            return .deliver(conclude(outcome))
        case .fail(let failure):
            return fail(
                failure.cause == .forgedResponse
                    ? "the server's final authentication token is invalid" : failure.reason)
        case .wait, .computeToken:
            return .wait
        }
    }

    /// Asks again if the server has called the access token of a sign-in invalid, so that the controller renews it, or
    /// requires something that it does not have, so that the controller asks for that: each once in an exchange. The
    /// breaker does not count an invalid token that is renewed: it has expired early, or was revoked.
    private mutating func asksAgain(after outcome: ExchangeMachine.Outcome) -> Action? {
        let policy = controller.keeper.policy.current
        var invalidToken: CredentialReference?
        var lack: ScopeQuestions.Lack?
        switch outcome {
        case .rejected(_, let token, _):
            guard machine.hasInvalidCredential, !hasRenewedToken, policy.isAccessToken(token) else { return nil }
            invalidToken = token
            hasRenewedToken = true
        case .handedBack(let checks):
            guard !hasAskedForScopes, let refusal = checks.refusal, let stepUp = refusal.stepUp,
                controller.scopeDelegate != nil || stepUp.claims != nil, let token = permit.key?.credential,
                policy.isAccessToken(token)
            else { return nil }
            lack = ScopeQuestions.Lack(
                token: token, stepUp: stepUp, reason: refusal.text, target: request.target,
                metadata: BearerError.resourceMetadata(in: challengeFields))
            hasAskedForScopes = true
        case .notChallenged, .accepted: return nil
        }
        var context = machine.context
        context.accepted = nil
        var next = ExchangeMachine(context)
        _ = next.started()
        guard
            case .ask(let question) = next.responseReceived(
                status: context.source.status, challengeFields: challengeFields.map { ChallengeField($0) })
        else { return nil }
        machine = next
        unanswered = outcome
        sent = nil
        permit.invalidToken = invalidToken
        permit.lack = lack
        return run(.ask(question))
    }

    private mutating func fail(_ reason: String) -> Action {
        due = .nothing
        permit.end(.inconclusive)
        return .fail(reason: reason)
    }

    /// How long a token may take that is computed on another thread.
    static let tokenLimit = DispatchTimeInterval.seconds(60)

    /// Performs one step of a scheme's dialogue, and waits if it is computed on another thread.
    private mutating func take(_ request: TokenRequest) -> ExchangeMachine.Action {
        do throws(AuthenticationError) {
            if request.step == .open {
                dialogue = try request.offer.authenticator.makeDialogue(request.credential, machine.context)
            }
            let inputs = inputs
            switch dialogue?.take(request.step, binding: channelBinding, inputs) {
            case .computed(let token): return machine.tokenComputed(token)
            case .failed(let error): throw error
            case .elsewhere(let start): return machine.tokenComputed(try Self.wait(for: start, atMost: Self.tokenLimit))
            case nil:
                throw AuthenticationError(.tokenFailed, "a token came before the dialogue began")
            }
        } catch {
            return machine.tokenFailed(error)
        }
    }

    /// Blocks until `start` has called its argument. Throws `tokenFailed` after `limit`; a later token is discarded.
    static func wait(
        for start: (@escaping @Sendable (Result<DialogueToken, AuthenticationError>) -> Void) -> Void,
        atMost limit: DispatchTimeInterval
    ) throws(AuthenticationError) -> DialogueToken {
        let done = DispatchSemaphore(value: 0)
        let result = Mutex(
            Result<DialogueToken, AuthenticationError>.failure(.init(.tokenFailed, "no token was computed in time")))
        start { computed in
            result.withLock { $0 = computed }
            done.signal()
        }
        _ = done.wait(timeout: .now() + limit)
        return try result.withLock { $0 }.get()
    }

    private var inputs: AnswerInputs {
        AnswerInputs(
            fileTime: WallClock.fileTime(), random: { Randomness.bytes($0) }, nonces: controller.nonces,
            nonceToAnswer: nonce)
    }
}

/// The parts of a request that an answer may depend on. The public API does not provide the content.
struct SignedRequest: RequestDescription {
    let method: String
    let target: String

    func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool { false }
}
