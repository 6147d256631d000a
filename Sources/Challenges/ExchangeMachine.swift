// SPDX-License-Identifier: Apache-2.0

// The module in five nouns: `ChallengeParser` parses an origin's `Challenge`; an `AuthenticatorTable` ranks it; a
// `CredentialRequest` asks for a credential; an `AuthorizationField` answers it; an `ExchangeMachine` runs one request's whole
// exchange. `Authenticator.swift` says how a scheme plugs in. Beside them are `Breaker`, which keeps accounts from being
// locked, and `PathScope`, the paths for which an accepted answer may be reused.
//
// The machine does no I/O. The driver reports what happened, in the past tense, and runs the one action that is returned; an
// action that requests something (`ask`, `computeToken`, `send`) is followed by a later event. A response head is held until
// the action decides what becomes of it; the content of a response that is answered is read and dropped.
//
//   state                 waiting for
//   ready                 the first event
//   untouched             the response to a request that is not answered
//   awaitingChallenge     the response to the request as the client sent it
//   awaitingReuse         the response to a request with an answer that was accepted before
//   asked                 the decision about a credential
//   computingOpening      the dialogue's first token
//   awaitingToken         the response to a token that the server has to answer
//   computingReply        the dialogue's next token
//   abandoningReply       the same, although its connection is lost
//   awaitingVerdict       the response to a request with our answer
//   verifyingAcceptance   the dialogue's judgement on the server's last token
//   awaitingOpen          the response to the request as the client sent it, after the server ignored a dialogue's opening
//   finished              nothing
//
// `Documentation/ExchangeMachine.md` has the whole table, which a test generates from the code.
//
// Rules:
// 1. Nothing of ours is sent to an unlisted site, to an untrusted origin, or for a client that authenticates itself.
// 2. A secret is sent only after a challenge, or in a space that challenged and accepted before (`RequestContext.accepted`).
// 3. The strongest offer is asked about first. A weaker one is used only if the decision rejects the stronger; never because
//    the stronger failed.
// 4. The authenticator judges a challenge to our answer. Unless it says that the answer was stale, which happens once, no
//    answer is repeated.
// 5. At most `maximumRounds` sends of a request carry our answer; then the challenge goes back.
// 6. A dialogue that binds its connection stays on it (RFC 4559 §6); if the connection is lost, it starts again once.
// 7. A challenge that cannot be answered is delivered unchanged.

/// One request's exchange with a server that may challenge it: each event returns one comparable action.
///
/// Every pair of state and event is decided. Pairs that only a faulty driver can cause trap; no peer can cause one. An interim
/// response (1xx except 101) returns `wait`: forwarding it is the driver's business.
package struct ExchangeMachine: Sendable {
    /// The limit of sends that carry our answer.
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

    /// The offer that is being asked about, and those that could be asked about next.
    struct PendingDecision: Equatable, Sendable {
        let offer: Offer
        let weaker: [Offer]
        /// Asked before any challenge, because an answer was accepted here before.
        let isPreemptive: Bool
    }

    /// An answer that is being computed or judged.
    struct PendingAnswer: Equatable, Sendable {
        let offer: Offer
        let credential: EnrolledCredential
        let reference: CredentialReference
        let isPreemptive: Bool
    }

    enum Event: Equatable, Sendable {
        case started
        case responseReceived(status: Int, challengeFields: [String], informationFields: [String] = [])
        case decisionReceived(CredentialDecision)
        case tokenComputed(DialogueToken)
        case tokenFailed(reason: String)
        case connectionLost(requestMayRepeat: Bool)
        case replayImpossible(reason: String)
    }

    /// A box, so that copying a prepared machine for each request retains one object.
    private final class SharedContext: Sendable {
        let context: RequestContext

        init(_ context: RequestContext) { self.context = context }
    }

    private let shared: SharedContext
    package var context: RequestContext { shared.context }
    /// The checks made so far.
    package internal(set) var checks: ThreeChecks
    /// How many sends have carried our answer.
    package internal(set) var roundsAnswered = 0
    /// The next round must use the connection of the last one. It stays true at the end: that connection is authenticated and
    /// must not serve another client.
    package internal(set) var requiresSameConnection = false
    /// The challenges of the response that was received last; empty if it does not challenge or cannot be parsed.
    package internal(set) var challenges: [Challenge] = []
    var state = State.ready
    /// The driver holds a challenge that can be delivered.
    var holdsChallenge = false
    var hasRestarted = false
    /// A stale answer was replaced: a second one is not.
    var hasRenewed = false
    /// The field that the driver sent last.
    var sentField: AuthorizationField?

    package init(_ context: RequestContext) {
        checks = context.refusal ?? ThreeChecks(site: context.site)
        shared = SharedContext(context)
    }

    /// The request is about to go out.
    package mutating func started() -> Action { take(.started) }

    /// The head of the response to the last send was received. `challengeFields` are the values of its ``ChallengeSource``'s
    /// challenge fields, in order, and `informationFields` those of its information fields: they are evaluated only if they
    /// matter. `sent` is the field that was sent with the request, for an answer computed per request.
    package mutating func responseReceived(
        status: Int, challengeFields: @autoclosure () -> [String], informationFields: @autoclosure () -> [String] = [],
        sent: AuthorizationField? = nil
    ) -> Action {
        guard status == context.source.status || verifiesAcceptance else {
            return take(.responseReceived(status: status, challengeFields: [], informationFields: []))
        }
        sentField = sent
        return take(
            .responseReceived(
                status: status, challengeFields: challengeFields(), informationFields: informationFields()))
    }

    /// The credential request was decided.
    package mutating func decisionReceived(_ decision: CredentialDecision) -> Action {
        take(.decisionReceived(decision))
    }

    /// The step of the dialogue was taken. The token of a step that concludes is ignored.
    package mutating func tokenComputed(_ token: DialogueToken) -> Action { take(.tokenComputed(token)) }

    /// The step of the dialogue failed; `reason` goes into the credential check.
    package mutating func tokenFailed(reason: String) -> Action { take(.tokenFailed(reason: reason)) }

    /// The connection was lost before a response to the last send, or while the next round was being prepared.
    ///
    /// `requestMayRepeat`: the request is idempotent (RFC 9110 §9.2.2), or no byte of the last send has gone out. Otherwise a
    /// whole request that was sent is not sent again.
    package mutating func connectionLost(requestMayRepeat: Bool = false) -> Action {
        take(.connectionLost(requestMayRepeat: requestMayRepeat))
    }

    /// The last action cannot be run because the request's content is gone. The challenge that is held goes back.
    package mutating func replayImpossible(reason: String) -> Action { take(.replayImpossible(reason: reason)) }

    private mutating func take(_ event: Event) -> Action {
        guard let action = decide(event) else {
            // No peer can cause this: each event follows an action that was returned (see the table).
            preconditionFailure("the driver reported an event that no action of the exchange asked for")
        }
        return action
    }

    /// The table: nil is a mistake of the driver.
    mutating func decide(_ event: Event) -> Action? {
        switch event {
        case .started: decideStarted()
        case .responseReceived(let status, _, _) where (100..<200).contains(status) && status != 101: decideInterim()
        case .responseReceived(let status, let fields, _) where status == context.source.status:
            decideChallenge(fields)
        case .responseReceived(let status, let fields, let information):
            decideResponse(status, fields, information)
        case .decisionReceived(let decision): decideDecision(decision)
        case .tokenComputed(let token): decideToken(token)
        case .tokenFailed(let reason): decideTokenFailure(reason)
        case .connectionLost(let mayRepeat): decideConnectionLoss(mayRepeat: mayRepeat)
        case .replayImpossible(let reason): decideReplayImpossible(reason)
        }
    }
}
