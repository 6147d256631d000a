// SPDX-License-Identifier: Apache-2.0

// The room in five nouns: an origin's `Challenge` is parsed by `ChallengeParser`, ranked by `SchemeChooser`, asked about as an
// `CredentialRequest`, and answered with an `Authorization`; `ExchangeMachine` is one request's whole dialogue. Beside
// it stand `Breaker`, which keeps accounts from being locked, and `PathScope`, which says where an accepted answer may go unasked.
//
// Theory. The exchange does no I/O. The driver reports what happened, in the past tense, and runs the one action that comes back;
// an action that asks for something (`ask`, `computeToken`, `send`) is answered by a later event. A response head is held until
// the action says what becomes of it; the body of a 401 that is answered is drained and dropped.
//
//   state               what is out              responseReceived                              answered by
//   ready               nothing                                                                started
//   untouched           request, not for us      any: deliver
//   awaitingChallenge   request as it came       401: choose -> asked; else deliver
//   awaitingLearned     request + learned Basic  401 same realm: rejected; 401 else: choose; else accepted
//   asked               a question                                                             decisionReceived
//   computingOpening    NTLM's first message                                                   tokenComputed, tokenFailed
//   awaitingToken       the opening              401 + token -> computingAnswer; 401: hand back; else the path is open
//   computingAnswer     NTLM's last message                                                    tokenComputed, tokenFailed
//   abandoningAnswer    the same, in vain                                                      tokenComputed, tokenFailed
//   awaitingVerdict     request + our answer     401: rejected; else accepted
//   awaitingOpen        request as it came       any: deliver
//   finished            nothing
//
// Rules.
// 1. Nothing of ours is sent for an unlisted site, an untrusted origin, or a client with an `Authorization` of its own.
// 2. A secret leaves only after a 401, or where one was answered and accepted before (`RequestContext.learned`).
// 3. The strongest offer is asked about first; a weaker one only if the person refuses that, never because it failed.
// 4. A 401 to a final answer is a rejection, whatever it offers. No answer is repeated.
// 5. `maximumRounds` sends of a request carry our authorization; then the 401 goes out.
// 6. An NTLM dialogue stays on one connection (RFC 4559 §6); a lost one starts again once, on a new connection.
// 7. Whatever cannot be answered is delivered as it came.

/// One request's dialogue with an origin that may challenge it: events in, one comparable action out.
///
/// Every (state, event) pair is decided. Those that only a mistaken driver can bring about trap; what a peer can bring about
/// never does. An interim response (1xx but 101) is answered `wait`, and belongs to the driver.
package struct ExchangeMachine: Sendable {
    /// How many sends of one request may carry our authorization.
    package static let maximumRounds = 3

    enum State: Equatable, Sendable {
        case ready
        case untouched
        case awaitingChallenge
        indirect case awaitingLearned(realm: String, credential: CredentialReference)
        indirect case asked(Question)
        indirect case computingOpening(PendingAnswer)
        indirect case awaitingToken(PendingAnswer)
        indirect case computingAnswer(PendingAnswer)
        indirect case abandoningAnswer(PendingAnswer)
        indirect case awaitingVerdict(PendingAnswer, AuthorizationField)
        case awaitingOpen
        case finished
    }

    /// What is being asked, and what could be asked next.
    struct Question: Equatable, Sendable {
        let offer: Offer
        let weaker: [Offer]
        /// Asked before any challenge, because one was answered here earlier.
        let isLearned: Bool
    }

    /// An answer in the making. `credential` is what it is made of.
    struct PendingAnswer: Equatable, Sendable {
        let offer: Offer
        let credential: PasswordCredential
        let isLearned: Bool
    }

    enum Event: Equatable, Sendable {
        case started
        case responseReceived(status: Int, challengeFields: [String])
        case decisionReceived(CredentialDecision)
        case tokenComputed([UInt8])
        case tokenFailed(reason: String)
        case connectionLost(requestMayRepeat: Bool)
        case replayImpossible(reason: String)
    }

    /// The contexts of exchanges that begin alike are one object: an exchange is copied for each request.
    private final class SharedContext: Sendable {
        let context: RequestContext

        init(_ context: RequestContext) { self.context = context }
    }

    private let shared: SharedContext
    package var context: RequestContext { shared.context }
    /// As far as they have been looked at.
    package internal(set) var checks: ThreeChecks
    /// How many sends have carried our authorization.
    package internal(set) var roundsAnswered = 0
    /// The next round must go on the connection of the last one. Stays true at the end: that connection is authenticated, and
    /// may serve no other client.
    package internal(set) var requiresSameConnection = false
    var state = State.ready
    /// The driver has a 401 in hand that can be delivered.
    var holdsChallenge = false
    var hasRestarted = false

    package init(_ context: RequestContext) {
        checks = context.refusal ?? ThreeChecks(site: context.site)
        shared = SharedContext(context)
    }

    /// The request is about to go out.
    package mutating func started() -> Action { take(.started) }

    /// A response head came to what was sent last. `challengeFields` are the values of its `WWW-Authenticate` fields, in order.
    package mutating func responseReceived(status: Int, challengeFields: [String]) -> Action {
        take(.responseReceived(status: status, challengeFields: challengeFields))
    }

    /// The question was answered.
    package mutating func decisionReceived(_ disposition: CredentialDecision) -> Action {
        take(.decisionReceived(disposition))
    }

    /// The NTLM message is there: its bytes, not yet in Base64.
    package mutating func tokenComputed(_ token: [UInt8]) -> Action { take(.tokenComputed(token)) }

    /// The NTLM message cannot be made; `reason` becomes the credential check's.
    package mutating func tokenFailed(reason: String) -> Action { take(.tokenFailed(reason: reason)) }

    /// The connection of the last send is gone before a response to it, or while the next round was being prepared.
    ///
    /// `requestMayRepeat`: the request is idempotent (RFC 9110 §9.2.2), or no byte of what was sent last has gone out; without
    /// it, a whole request that was sent is not sent again.
    package mutating func connectionLost(requestMayRepeat: Bool = false) -> Action {
        take(.connectionLost(requestMayRepeat: requestMayRepeat))
    }

    /// The last action cannot be done, as the request's body is no longer there: the 401 in hand goes out.
    package mutating func replayImpossible(reason: String) -> Action { take(.replayImpossible(reason: reason)) }

    private mutating func take(_ event: Event) -> Action {
        guard let action = decide(event) else {
            // No peer can bring this about: each event answers an action that was given out (the table above).
            preconditionFailure("the driver reported an event that no action of the exchange asked for")
        }
        return action
    }

    /// The table: nil is a mistake of the driver.
    mutating func decide(_ event: Event) -> Action? {
        switch event {
        case .started: decideStarted()
        case .responseReceived(let status, _) where (100..<200).contains(status) && status != 101: decideInterim()
        case .responseReceived(let status, let fields): decideResponse(status == 401 ? fields : nil, status: status)
        case .decisionReceived(let disposition): decideDecision(disposition)
        case .tokenComputed(let token): decideToken(token)
        case .tokenFailed(let reason): decideTokenFailure(reason)
        case .connectionLost(let mayRepeat): decideConnectionLoss(mayRepeat: mayRepeat)
        case .replayImpossible(let reason): decideReplayImpossible(reason)
        }
    }
}
