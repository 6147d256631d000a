// SPDX-License-Identifier: Apache-2.0

/// The client's side of a dialogue that exchanges tokens. The driver of an exchange owns it, and takes one step for
/// each ``ExchangeMachine/Action/computeToken(_:)``.
package protocol TokenDialogue: Sendable {
    /// Takes one step. `binding` identifies the TLS connection that will carry the token; nil if the connection does
    /// not use TLS or its certificate is not known.
    mutating func take(_ step: TokenStep, binding: ChannelBinding?, _ inputs: AnswerInputs) -> TokenComputation
}

/// A step of a dialogue.
package enum TokenStep: Equatable, Sendable {
    /// Compute the first token.
    case open
    /// Reply to the server's token.
    case reply(to: [UInt8])
    /// Verify the token of the final response. Produces no token. Fails if the token is wrong, but not if it proves
    /// nothing: see ``DialogueToken/unprovedReason``.
    case conclude([UInt8])
}

/// A token for the server, not encoded in Base64 yet.
package struct DialogueToken: Equatable, Sendable {
    package let bytes: [UInt8]
    /// Whether the server will reply with a token. If so, the request is sent without its content, because it will be
    /// challenged again.
    package let expectsReply: Bool
    /// After a step that concludes: why the server's token proves nothing, although nothing in it is wrong.
    package let unprovedReason: String?

    package init(_ bytes: [UInt8], expectsReply: Bool) {
        self.bytes = bytes
        self.expectsReply = expectsReply
        unprovedReason = nil
    }

    /// The result of a step that concludes.
    package init(concluding unprovedReason: String?) {
        bytes = []
        expectsReply = false
        self.unprovedReason = unprovedReason
    }
}

/// The result of a step.
package enum TokenComputation: Sendable {
    case computed(DialogueToken)
    case failed(AuthenticationError)
    /// Computed on another thread: the closure starts the computation, which calls its argument once, on any thread.
    case elsewhere(@Sendable (@escaping @Sendable (Result<DialogueToken, AuthenticationError>) -> Void) -> Void)
}

/// A step that the machine requests.
package struct TokenRequest: Equatable, Sendable {
    package let offer: Offer
    package let credential: EnrolledCredential
    package let step: TokenStep

    package init(_ offer: Offer, _ credential: EnrolledCredential, _ step: TokenStep) {
        self.offer = offer
        self.credential = credential
        self.step = step
    }
}
