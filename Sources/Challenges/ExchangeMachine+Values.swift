// SPDX-License-Identifier: Apache-2.0

extension ExchangeMachine {
    /// What the driver does next; each event returns one.
    package enum Action: Equatable, Sendable {
        /// Send the whole request with our answer, or, if nil, as the client sent it. Followed by `responseReceived`.
        case send(Answer?)
        /// Send the request with our answer but without its content, with `Content-Length: 0` if it has one: the server will
        /// challenge again. Followed by `responseReceived`.
        case sendOpening(Answer)
        /// Request a credential. Followed by `decisionReceived`.
        case ask(CredentialRequest)
        /// Take a step of a ``TokenDialogue``; `.open` begins a new one, on the connection that the next `send` will use.
        /// Followed by `tokenComputed` or `tokenFailed`.
        case computeToken(TokenRequest)
        /// Deliver the response whose head is held to the client; its content follows.
        case deliver(Outcome)
        /// There is no response to deliver: answer with 502.
        case fail(Failure)
        /// Do nothing: an interim response came, or an earlier action is still to be followed by its event.
        case wait
    }

    /// Why there is no response to deliver.
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

    /// How an exchange ended that has a response to deliver.
    package enum Outcome: Equatable, Sendable {
        /// The response does not challenge, or says nothing about the answer that was sent.
        case notChallenged
        /// Our answer was accepted. The object is `RequestContext.accepted` if it was sent before a challenge.
        case accepted(AcceptedAnswer)
        /// The challenge goes back unchanged; the first failed check says why.
        case handedBack(ThreeChecks)
        /// Our answer was rejected, and its challenge goes back; the breaker has to know.
        case rejected(AuthenticationSpace, credential: CredentialReference, ThreeChecks)
    }
}
