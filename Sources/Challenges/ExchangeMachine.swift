// SPDX-License-Identifier: Apache-2.0

// The main types of this module: `ChallengeParser` parses an origin's `Challenge`, an `AuthenticatorTable` ranks it, a
// `CredentialRequest` requests a credential, an `AuthorizationField` answers, and an `ExchangeMachine` controls the
// whole exchange of one request. `Authenticator.swift` describes how a scheme plugs in. In addition, `Breaker` prevents
// account lockouts, and `PathScope` describes the paths for which an accepted answer may be reused.
//
// The machine does no I/O. The driver reports events, which are named in the past tense, and performs the one action
// that each returns. An action that requests something (`ask`, `computeToken`, `send`) is followed by a later event.
// The driver holds a response head until an action decides whether to deliver it; the content of a response that is
// answered is read and discarded.
//
//   state                 waiting for
//   ready                 the first event
//   untouched             the response to a request that is not answered
//   awaitingChallenge     the response to the request as the client sent it
//   awaitingReuse         the response to a request with an answer that was accepted before
//   asked                 the decision about a credential
//   computingOpening      the dialogue's first token
//   awaitingToken         the response to a token to which the server must reply
//   computingReply        the dialogue's next token
//   abandoningReply       the same, although its connection is lost
//   awaitingVerdict       the response to a request with our answer
//   verifyingAcceptance   the dialogue's verification of the server's last token
//   awaitingOpen          the response to the request as the client sent it, after an opening was ignored
//   finished              nothing
//
// `Documentation/ExchangeMachine.md` contains the complete table, which a test generates from the code.
//
// Rules:
//   1. Nothing of ours is sent to an unlisted site, to an untrusted origin, or for a client that authenticates itself.
//   2. A secret is sent only after a challenge, or in a space that challenged and accepted before
//      (`RequestContext.accepted`).
//   3. A credential is requested for the strongest offer first. A weaker offer is used only if the decision rejects the
//      stronger one, or if no answer to that is available here, such as without a ticket; never because the server
//      refused the stronger one. If the server replies with weaker offers to an answer that was sent before a
//      challenge, the request is sent once without an answer, and the challenge to that is the first.
//   4. The authenticator interprets a challenge to our answer. No answer is repeated, unless the authenticator finds
//      that it was stale, which is allowed once. An answer that was sent before a challenge answered an earlier one:
//      if the authenticator finds that the new challenge asks for another answer (RFC 7616 §3.6), it is the first.
//   5. A request is sent with our answer at most `maximumRounds` times; then the challenge is handed back.
//   6. A dialogue that binds its connection stays on it (RFC 4559 §6); if the connection is lost, it restarts once. A
//      request whose opening was ignored leaves it if the connection ends.
//   7. A challenge that cannot be answered is delivered unchanged.
//   8. A request with content waits for its own challenge before a dialogue is opened: a server that does not challenge
//      would act on the opening, which has no content, and then on the request.
//   9. A server need not prove that it knows the secret. An absent or unreadable proof is not a wrong proof.

/// The exchange of one request with a server that may challenge it. Each event returns one action, which can be
/// compared.
///
/// Every combination of state and event is handled. Combinations that only a faulty driver can cause trap; no peer can
/// cause one. An interim response (1xx except 101) returns `wait`: forwarding it is up to the driver.
package struct ExchangeMachine: Sendable {
    /// How often a request may be sent with our answer.
    package static let maximumRounds = 3

    enum State: Equatable, Sendable {
        case ready
        case untouched
        case awaitingChallenge
        case awaitingReuse(AcceptedAnswer)
        indirect case asked(PendingDecision)
        indirect case computingOpening(PendingAnswer)
        indirect case awaitingToken(PendingAnswer, Answer)
        indirect case computingReply(PendingAnswer)
        indirect case abandoningReply(PendingAnswer)
        indirect case awaitingVerdict(PendingAnswer, Answer)
        indirect case verifyingAcceptance(PendingAnswer, Answer)
        indirect case awaitingOpen(Offer)
        case finished
    }

    /// The offer for which a credential is requested, and the weaker ones that may follow.
    struct PendingDecision: Equatable, Sendable {
        let offer: Offer
        let weaker: [Offer]
        /// Requested before any challenge, because an answer was accepted here before.
        let isPreemptive: Bool
        /// As in ``CredentialRequest``.
        var refused: AcceptedAnswer?
    }

    /// An answer that is being computed, or whose outcome is not known yet.
    struct PendingAnswer: Equatable, Sendable {
        let offer: Offer
        /// Those that follow if the answer cannot be computed here.
        let weaker: [Offer]
        let credential: EnrolledCredential
        let reference: CredentialReference
        let isPreemptive: Bool
        /// As in ``CredentialRequest``.
        var refused: AcceptedAnswer?
    }

    enum Event: Equatable, Sendable {
        case started
        case responseReceived(status: Int, challengeFields: [ChallengeField], informationFields: [String] = [])
        indirect case decisionReceived(CredentialDecision)
        case tokenComputed(DialogueToken)
        case tokenFailed(reason: Refusal, isUnavailable: Bool)
        case connectionLost(requestMayRepeat: Bool)
        case replayImpossible(reason: Refusal)
    }

    /// A reference type, so that copying a prepared machine for each request retains one object.
    private final class SharedContext: Sendable {
        let context: RequestContext

        init(_ context: RequestContext) { self.context = context }
    }

    private let shared: SharedContext
    package var context: RequestContext { shared.context }
    /// The results of the checks so far.
    package internal(set) var checks: ThreeChecks
    /// How often a request was sent with our answer.
    package internal(set) var roundsAnswered = 0
    /// Whether the next round must use the connection of the previous one. If still true at the end, the connection is
    /// authenticated and must not serve another client.
    package internal(set) var requiresSameConnection = false
    /// The challenges of the most recent response; empty if it is not a challenge or cannot be parsed.
    package internal(set) var challenges: [Challenge] = []
    var state = State.ready
    /// Whether the driver holds a challenge that can be delivered.
    var holdsChallenge = false
    var hasRestarted = false
    /// Why stronger offers could not be answered.
    var localFailures: [Refusal] = []
    /// The server said that the credential itself is wrong, which makes a rejection independent of the request.
    package internal(set) var hasInvalidCredential = false
    /// The space in which no answer could be computed before a challenge. It would fail after one, too.
    var failedSpace: AuthenticationSpace?
    /// The failure there does not permit a weaker answer.
    var failureBarsWeaker = false
    /// Whether a stale answer was renewed. This happens at most once.
    var hasRenewed = false
    /// The field that the driver sent most recently.
    var sentField: AuthorizationField?
    /// Why the response that accepts our answer does not prove that the server knows the secret, too, although it seems
    /// to try; nil if there is nothing to say.
    package internal(set) var unprovedReason: String?

    package init(_ context: RequestContext) {
        checks = context.refusal ?? ThreeChecks(site: context.site)
        shared = SharedContext(context)
    }

    /// Why a stronger scheme that the server offers was not answered; nil without one.
    package var reasonForWeaker: String? {
        localFailures.isEmpty ? nil : Refusal.joined(localFailures).text
    }

    /// The answer that is sent, or was sent, before a challenge, and to which the server has not responded.
    package var unaskedAnswer: AcceptedAnswer? {
        if case .awaitingReuse(let accepted) = state { accepted } else { nil }
    }

    /// The request is about to go out.
    package mutating func started() -> Action { take(.started) }

    /// The head of the response to the last send was received. `challengeFields` are the values of the challenge fields
    /// of the ``ChallengeSource``, in order, and `informationFields` those of its information fields; both are
    /// evaluated only if needed. `sent` is the field that was sent with the request, for an answer computed per
    /// request.
    package mutating func responseReceived(
        status: Int, challengeFields: @autoclosure () -> [ChallengeField],
        informationFields: @autoclosure () -> [String] = [],
        sent: AuthorizationField? = nil
    ) -> Action {
        guard
            status == context.source.status || mayVerifyAcceptance(ofStatus: status)
                || mayChallenge(withStatus: status)
        else {
            return take(.responseReceived(status: status, challengeFields: [], informationFields: []))
        }
        sentField = sent
        return take(
            .responseReceived(
                status: status, challengeFields: challengeFields(), informationFields: informationFields()))
    }

    /// The driver received the decision about the credential.
    package mutating func decisionReceived(_ decision: CredentialDecision) -> Action {
        take(.decisionReceived(decision))
    }

    /// The step of the dialogue succeeded. The token of a step that concludes is ignored.
    package mutating func tokenComputed(_ token: DialogueToken) -> Action { take(.tokenComputed(token)) }

    /// The step of the dialogue failed. The reason appears in the credential check. If there was nothing to compute a
    /// token from, a weaker scheme may answer.
    package mutating func tokenFailed(_ error: AuthenticationError) -> Action {
        take(.tokenFailed(reason: error.refusal, isUnavailable: error.isUnavailable))
    }

    /// The connection was lost before a response to the last send, or while the next round was being prepared.
    ///
    /// `requestMayRepeat`: whether the request is idempotent (RFC 9110 §9.2.2), or no byte of the last send was
    /// transmitted. Otherwise, a request that was sent whole is not sent again; an opening may be.
    package mutating func connectionLost(requestMayRepeat: Bool = false) -> Action {
        take(.connectionLost(requestMayRepeat: requestMayRepeat))
    }

    /// The last action cannot be performed because the request's content is no longer available. The held challenge is
    /// handed back.
    package mutating func replayImpossible(reason: Refusal) -> Action { take(.replayImpossible(reason: reason)) }

    /// As in ``RequestContext``. Most responses are not errors, and the context is large, so it is not accessed for
    /// them.
    @inline(__always)
    private func mayChallenge(withStatus status: Int) -> Bool {
        status >= 400 && context.mayChallenge(withStatus: status)
    }

    /// Whether a response with another status than that of the source may be a challenge now: it is about the request
    /// as the client sent it, or about an answer of a scheme that challenges with this status. An answer of another
    /// scheme has been accepted, even if the server requires something else in addition.
    private func expectsChallenge(withStatus status: Int) -> Bool {
        switch state {
        case .awaitingChallenge: true
        case .awaitingVerdict(let pending, _): pending.offer.authenticator.alsoChallenges(withStatus: status)
        default: false
        }
    }

    private mutating func take(_ event: Event) -> Action {
        guard let action = decide(event) else {
            // No peer can cause this: each event follows an action that requested it (see the table). A driver reports
            // responses only to a request that the machine has had sent, and decisions and tokens only if its exchange
            // still waits for them; the tests of hostile parents and origins deliver them at random.
            preconditionFailure("the driver reported an event that no action of the exchange asked for")
        }
        return action
    }

    /// The state table. Nil means that the driver made a mistake.
    mutating func decide(_ event: Event) -> Action? {
        switch event {
        case .started: decideStarted()
        case .responseReceived(let status, _, _) where (100..<200).contains(status) && status != 101: decideInterim()
        case .responseReceived(let status, let fields, _)
        where status == context.source.status
            || mayChallenge(withStatus: status) && expectsChallenge(withStatus: status)
                && context.isChallenge(fields, status):
            decideChallenge(fields, status)
        case .responseReceived(let status, let fields, let information):
            decideResponse(status, fields, information)
        case .decisionReceived(let decision): decideDecision(decision)
        case .tokenComputed(let token): decideToken(token)
        case .tokenFailed(let reason, let isUnavailable): decideTokenFailure(reason, isUnavailable: isUnavailable)
        case .connectionLost(let mayRepeat): decideConnectionLoss(mayRepeat: mayRepeat)
        case .replayImpossible(let reason): decideReplayImpossible(reason)
        }
    }
}
