// SPDX-License-Identifier: Apache-2.0

/// Our side of one dialogue of tokens. The driver of an exchange keeps it and takes one step for each
/// ``ExchangeMachine/Action/computeToken(_:)``.
package protocol TokenDialogue: Sendable {
    /// Takes one step. `binding` identifies the TLS connection that the token will be sent on; nil: there is no TLS, or its
    /// certificate is not known.
    mutating func take(_ step: TokenStep, binding: ChannelBinding?, _ inputs: AnswerInputs) -> TokenComputation
}

/// The next step of a dialogue.
package enum TokenStep: Equatable, Sendable {
    /// Make the first token.
    case open
    /// Answer the server's token.
    case reply(to: [UInt8])
    /// Verify the token that came with the final response. Makes no token of its own.
    case conclude([UInt8])
}

/// A token for the server: bytes that are not yet encoded in Base64.
package struct DialogueToken: Equatable, Sendable {
    package let bytes: [UInt8]
    /// The server answers it with a token of its own: the request goes out without its body, which would be sent in vain.
    package let expectsReply: Bool

    package init(_ bytes: [UInt8], expectsReply: Bool) {
        self.bytes = bytes
        self.expectsReply = expectsReply
    }
}

/// How a step is taken.
package enum TokenComputation: Sendable {
    case computed(DialogueToken)
    case failed(reason: String)
    /// On another thread: the closure starts the computation, which calls its argument once, on any thread.
    case elsewhere(@Sendable (@escaping @Sendable (Result<DialogueToken, AuthenticationError>) -> Void) -> Void)
}

/// A step that the machine asks for.
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
