// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy

/// A driver's request, for the ``AnswerDialogue`` about its challenges. No call may re-enter the dialogue.
package protocol AnsweredRequest: AnyObject, RequestDescription {
    var answerServices: AnswerServices { get }
    var policy: Policy { get }
    /// The line of the list that permits answers; nil if none does.
    var rule: SiteRule? { get }
    var answerInputs: AnswerInputs { get }
    /// Of the connection in use, if it has TLS.
    var channelBinding: ChannelBinding? { get }

    /// Why no further answer is permitted: the server is no longer trusted.
    var trustObstacle: Refusal? { get }
    /// Why no credential may be used any longer: the client has gone, or another user has its place.
    var clientObstacle: Refusal? { get }
    /// Whether the request can still be sent from its start.
    var mayBegin: Bool { get }
    /// Whether the outcome is reported to the observer.
    var isObserved: Bool { get }
    /// The path without the query, for the observer; nil if it has none.
    var observedPath: String? { get }

    /// The password or token for `space`.
    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision
    /// A question for another password than `refused`; nil without anyone to ask.
    func question(insteadOf refused: PasswordCredential, in space: AuthenticationSpace) -> Later.Question?

    /// A decision about a credential begins.
    func decisionBegins()
    /// The answers of the request use `credential` from now on.
    func uses(_ credential: CredentialReference)
    /// A challenge was answered with `credential`, and the server has decided about that.
    func wasAnswered(in space: AuthenticationSpace, with credential: CredentialReference)
    /// No token could be computed. If the machine hands back the challenge, it is the one before the dialogue.
    func tokenFailed()
    /// Discards the previously accepted answer, which is no longer of use.
    func forgetAccepted()
    /// The request is about to be sent as the client sent it, as if it had never been answered.
    func beginsAnew()
}

extension AnsweredRequest {
    package var trustObstacle: Refusal? { nil }
    package var clientObstacle: Refusal? { nil }
    package var mayBegin: Bool { true }
    package var isObserved: Bool { true }

    package func question(insteadOf refused: PasswordCredential, in space: AuthenticationSpace) -> Later.Question? {
        nil
    }

    package func decisionBegins() {}
    package func uses(_ credential: CredentialReference) {}
    package func wasAnswered(in space: AuthenticationSpace, with credential: CredentialReference) {}
    package func tokenFailed() {}
    package func beginsAnew() {}

    /// Identifies the request to the breaker.
    var tag: Breaker.RequestTag { Breaker.RequestTag(method: method, target: target) }
}

/// A scheme's proofs for a request, with the renewed or replaced credential in place of the enrolled one.
struct RequestProofs<Request: AnsweredRequest>: ProofSource {
    let request: Request
    let held: HeldAnswer?

    func enrolled(in space: AuthenticationSpace) -> CredentialDecision {
        if let replacement = held?.replacement, space.scheme.uses(.password(replacement)) {
            return .useCredential(.password(replacement))
        }
        let decision = request.credentialDecision(in: space)
        // The exchange keeps the policy with which it started.
        if let renewed = held?.renewedToken, case .useCredential(.token(let token)) = decision,
            token.name == renewed.name
        {
            return .useCredential(.token(renewed))
        }
        return decision
    }

    var ticket: CredentialDecision {
        request.rule.map { request.policy.ticketDecision(for: $0) } ?? .performDefaultHandling(reason: .unlisted)
    }

    func device(for challenge: Challenge) -> CredentialDecision {
        guard let rule = request.rule else { return .performDefaultHandling(reason: .unlisted) }
        return request.policy.deviceDecision(for: challenge, rule, now: request.answerServices.now())
    }
}
