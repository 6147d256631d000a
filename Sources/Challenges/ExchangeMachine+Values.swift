// SPDX-License-Identifier: Apache-2.0

extension ExchangeMachine {
    /// The driver's next action. Each event returns one.
    ///
    /// The cases with much content are indirect, so that an action is two words. Stored in place, they make 12 copies
    /// of some 200 bytes per request, even without a challenge: 600 instructions.
    package enum Action: Equatable, Sendable {
        /// Send the whole request with our answer, or, if nil, as the client sent it. Followed by `responseReceived`.
        case send(Answer?)
        /// Send the request with our answer but without its content, with `Content-Length: 0` if it has content: the
        /// server will challenge again. Followed by `responseReceived`.
        case sendOpening(Answer)
        /// Request a credential. Followed by `decisionReceived`.
        indirect case ask(CredentialRequest)
        /// Take a step of a ``TokenDialogue``; `.open` starts a new one, on the connection that the next `send` will
        /// use. Followed by `tokenComputed` or `tokenFailed`.
        indirect case computeToken(TokenRequest)
        /// Deliver the held response head to the client, followed by the content.
        case deliver(Outcome)
        /// There is no response to deliver: respond with 502.
        indirect case fail(Failure)
        /// Do nothing: the response was an interim response, or the event of an earlier action is still due.
        case wait
    }

    /// The reason that there is no response to deliver.
    package struct Failure: Equatable, Sendable {
        package enum Cause: Equatable, Sendable {
            case connectionLost
            /// The server's last token, or its `Authentication-Info`, is wrong.
            case forgedResponse
        }

        package let cause: Cause
        package let reason: String

        package init(_ cause: Cause, _ reason: String) {
            self.cause = cause
            self.reason = reason
        }
    }

    /// The result of an exchange that has a response to deliver.
    package enum Outcome: Equatable, Sendable {
        /// The response is not a challenge, and says nothing about the answer that was sent.
        case notChallenged
        /// Our answer was accepted. This is `RequestContext.accepted` itself if that answer was sent pre-emptively.
        case accepted(AcceptedAnswer)
        /// The challenge is handed back unchanged; the first failed check gives the reason.
        indirect case handedBack(ThreeChecks)
        /// Our answer was rejected, and the challenge is handed back. The breaker must be notified.
        indirect case rejected(AuthenticationSpace, credential: CredentialReference, ThreeChecks)
    }
}
