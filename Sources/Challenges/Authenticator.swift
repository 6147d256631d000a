// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

// How an authentication scheme plugs in
//
// An `Authenticator` is one scheme in one carriage: Basic, NTLM behind the word `NTLM`, NTLM inside SPNEGO. It holds no state.
// `ExchangeMachine` runs the exchange and asks the authenticator everything in which schemes differ:
//
//   question                                                    requirement
//   Which challenges can it answer?                             schemeName, canAnswer(_:), scheme
//   How strong is it?                                           its position in the AuthenticatorTable
//   What does an answer protect, and where may it be reused?    realm(of:), scopes(of:challengedTarget:), bindsConnection
//   What answers a challenge?                                   reply(to:with:_:)
//   What does a repeated challenge mean?                        verdict(on:)
//   Does the response prove that the server knows the secret?   verifiesAcceptance, acceptance(_:)
//   What may be sent next time before a challenge?              preemption(after:)
//
// A reply has one of three forms:
//
//   Reply.answer(.fixed)        The same field for every request in the space: Basic, Bearer.
//   Reply.answer(.perRequest)   A field computed for each request by a `RequestSigner`: Digest, which needs the method, the
//                               request target and a nonce count.
//   Reply.dialogue              Tokens in turn, made by a `TokenDialogue` outside the machine, at once or on another thread:
//                               NTLM, Kerberos.
//
// To add a scheme, write one file with an `Authenticator` and add it to the `AuthenticatorTable` that the product is composed
// with (`AuthenticatorTable.supported`). A test compares that table with `AuthenticationScheme.supported`.

/// One authentication scheme (RFC 9110 §11.1) in one carriage.
package protocol Authenticator: AnyObject, Sendable {
    /// The scheme's name in challenges and in our field, compared without regard to case.
    var schemeName: String { get }
    /// The word of the allowed-sites list that permits the scheme.
    var scheme: AuthenticationScheme { get }
    /// The name in messages for people, such as `NTLM`.
    var name: String { get }
    /// Whether an answer authenticates the connection rather than the request. All its rounds share one connection, which then
    /// serves no other client.
    var bindsConnection: Bool { get }
    /// Whether answers over TLS are bound to the server's certificate (RFC 5929), which therefore must be known.
    var usesChannelBinding: Bool { get }
    /// Whether ``acceptance(_:)`` has to see every response that accepts an answer.
    var verifiesAcceptance: Bool { get }

    /// Whether a challenge with this scheme name is complete enough to be answered.
    func canAnswer(_ challenge: Challenge) -> Bool

    /// The realm that separates protection spaces; nil if the whole origin is one space.
    func realm(of challenge: Challenge) -> String?

    /// The paths for which an answer to `challenge` may be reused. `challengedTarget` is the target that was challenged, in
    /// origin-form. Empty: none.
    func scopes(of challenge: Challenge, challengedTarget: String) -> [PathScope]

    /// Why the scheme cannot carry the credential, or nil.
    func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String?

    /// What answers `challenge`. Throws `unusableCredential` if the scheme cannot carry the credential, and
    /// `unsupportedChallenge` if the challenge asks for something that is not implemented.
    func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply

    /// Begins a dialogue, after ``reply(to:with:_:)`` has returned ``Reply/dialogue``.
    func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue

    /// What a challenge to a request that carried our answer means.
    func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict

    /// What a response other than a challenge says about our answer. Called only if ``verifiesAcceptance``.
    func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict

    /// What may be sent in the same space before the next challenge, once `answer` has been accepted.
    func preemption(after answer: Answer) -> Preemption
}

/// The form of a reply to a challenge.
package enum Reply: Sendable {
    /// One request carries the whole answer.
    case answer(Answer)
    /// A ``TokenDialogue`` makes one token after another.
    case dialogue
}

/// A challenge that came back although the request carried our answer.
package struct RepeatedChallenge: Sendable {
    /// All challenges of the response.
    package let challenges: [Challenge]
    /// The challenge that was answered.
    package let answered: Challenge
    package let answer: Answer
    /// The field that was sent: for `Answer.perRequest`, the one computed for this request.
    package let sent: AuthorizationField?
    /// The answer was a token to which the dialogue expects a reply.
    package let expectsToken: Bool
    package let source: ChallengeSource
}

extension RepeatedChallenge {
    /// The server's next token, if the dialogue of `authenticator` expects one; otherwise the answer was rejected.
    package func nextToken(of authenticator: some Authenticator) -> ChallengeVerdict {
        guard expectsToken else { return .rejected }
        let tokens = challenges.filter { $0.isOf(authenticator.schemeName) }.compactMap(\.token68)
        guard let first = tokens.first else { return .handBack(source.notContinued(authenticator)) }
        guard tokens.count == 1 else {
            return .handBack("\(source.name) sent \(tokens.count) \(authenticator.name) tokens at once")
        }
        guard let token = Base64.decode(first) else { return .handBack("\(authenticator.name) token is not Base64") }
        return .nextToken(token)
    }
}

/// The meaning of a repeated challenge.
package enum ChallengeVerdict: Sendable {
    /// The credential is wrong. The breaker stops using it here.
    case rejected
    /// The credential may be right, but the answer is out of date (RFC 7616 §3.3). The new answer is sent once.
    case stale(Answer)
    /// The dialogue continues with the server's token.
    case nextToken([UInt8])
    /// Neither: the challenge goes back to the client for this reason, and the credential is not blamed.
    case handBack(String)
}

/// A response that accepts our answer, unless it fails to prove that the server knows the secret too.
package struct AcceptingResponse: Sendable {
    package let challenge: Challenge
    package let answer: Answer
    /// The field that was sent.
    package let sent: AuthorizationField?
    /// The values of the challenge field: Negotiate carries its last token there (RFC 4559 §5).
    package let challengeFields: [String]
    /// The values of `Authentication-Info`, or `Proxy-Authentication-Info` (RFC 7615).
    package let informationFields: [String]
}

/// What a response other than a challenge says about our answer.
package enum AcceptanceVerdict: Sendable {
    case accepted
    /// The dialogue has to verify the server's last token.
    case finalToken([UInt8])
    /// The server's proof is wrong: somebody else may have answered.
    case forged(String)
}

/// What may be sent before a challenge, in a space that has accepted an answer.
package enum Preemption: Equatable, Sendable {
    /// Nothing.
    case none
    /// The answer, with each request (RFC 7617 §2.2, RFC 7616 §3.6).
    case answer(Answer)
    /// The first token of a new dialogue, which saves the first challenge. The credential is still requested.
    case dialogue
}

extension Authenticator {
    package var name: String { schemeName }
    package var bindsConnection: Bool { false }
    package var usesChannelBinding: Bool { false }
    package var verifiesAcceptance: Bool { false }
    package func canAnswer(_ challenge: Challenge) -> Bool { true }
    package func realm(of challenge: Challenge) -> String? { challenge.realm }

    /// The directory of the challenged path and everything below it.
    package func scopes(of challenge: Challenge, challengedTarget: String) -> [PathScope] {
        PathScope(challengedPath: challengedTarget).map { [$0] } ?? []
    }

    package func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue {
        throw AuthenticationError(.unsupportedChallenge, "\(name) is not a dialogue")
    }

    /// No answer is repeated.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict { .rejected }
    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict { .accepted }

    /// The space of `challenge` at `origin`.
    package func space(of challenge: Challenge, at origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: realm(of: challenge), scheme: scheme)
    }

    /// Whether one of `challenges` asks for the same space as `answered`.
    func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        challenges.contains { $0.isOf(schemeName) && realm(of: $0) == realm(of: answered) }
    }
}
