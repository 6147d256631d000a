// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

// How an authentication scheme plugs in
//
// An `Authenticator` is one scheme in one framing: Basic, raw NTLM, NTLM in SPNEGO. It holds no state.
// `ExchangeMachine` controls the exchange and asks the authenticator each question on which schemes differ:
//
//   question                                              requirement
//   Which challenges can it answer?                       schemeName, canAnswer(_:), scheme
//   In responses with which status?                       alsoChallenges(withStatus:)
//   How strong is it?                                     its position in the AuthenticatorTable
//   What does an answer protect, and where is it valid?   realm(of:), scopes(of:at:challengedTarget:), bindsConnection,
//                                                         answersEachRequest
//   Which credentials can it use, and send where?         usesTicket, sendsPassword, requiresTLS, obstacle(to:_:)
//   Which of those that are there answers a challenge?    proof(for:from:), usesSameCredential(as:)
//   How does the breaker know it, and may it change       permitKey(of:in:), secondLook(for:)
//   unnoticed?
//   What answers a challenge?                             reply(to:with:_:), makeDialogue(_:_:)
//   Is the answer bound to the server's certificate?      usesChannelBinding
//   What does a repeated challenge mean?                  verdict(on:)
//   Does another response accept the answer, and prove    verifiesAcceptance(ofStatus:hasInformation:),
//   that the server knows the secret?                     acceptance(_:)
//   What may be sent next time before a challenge?        preemption(after:)
//
// A reply has one of three forms:
//
//   Reply.answer(.fixed)        The same field for every request in the space: Basic, Bearer.
//   Reply.answer(.perRequest)   A field computed for each request by a `RequestSigner`: Digest, which needs the
//                               method, the request target and a nonce count; DPoP, with a second field beside it.
//   Reply.dialogue              A sequence of tokens, which a `TokenDialogue` computes outside the machine, on the same
//                               thread or another: NTLM, Kerberos.
//
// To add a scheme, write one file with an `Authenticator` and add it to the product's table,
// `AuthenticatorTable.supported`. A test compares that table with `AuthenticationScheme.supported`.

/// One authentication scheme (RFC 9110 §11.1) in one framing.
package protocol Authenticator: AnyObject, Sendable {
    /// The scheme's name in challenges and in our field, compared without regard to case.
    var schemeName: String { get }
    /// The keyword of the allowed-sites list that permits the scheme.
    var scheme: AuthenticationScheme { get }
    /// The name for display, such as `NTLM`.
    var name: String { get }
    /// Whether an answer authenticates the connection rather than the request. All rounds then use one connection,
    /// which afterwards serves no other client.
    var bindsConnection: Bool { get }
    /// Whether requests on a connection that an answer has authenticated carry answers, too.
    var answersEachRequest: Bool { get }
    /// Whether it answers with the user's own ticket instead of an enrolled credential.
    var usesTicket: Bool { get }
    /// Whether answers over TLS are bound to the server's certificate (RFC 5929), which therefore must be known.
    var usesChannelBinding: Bool { get }
    /// Whether answers contain the password itself, readable for anyone who can read them.
    var sendsPassword: Bool { get }
    /// Whether answers are sent over TLS only, even if the site's line contains `plaintext=yes`.
    var requiresTLS: Bool { get }
    /// Whether ``acceptance(_:)`` must examine every response that accepts an answer.
    var verifiesAcceptance: Bool { get }

    /// Whether a challenge with this scheme name is complete enough to answer.
    func canAnswer(_ challenge: Challenge) -> Bool

    /// Whether a response with this status is a challenge, too, if it has one with this scheme name.
    func alsoChallenges(withStatus status: Int) -> Bool

    /// Why a challenge with this scheme name cannot be answered, as words that follow the name: `without a realm`,
    /// `with algorithm SHA-512`. Nil if it can be, or if there is nothing to say. Contains printable ASCII only.
    func shortcoming(of challenge: Challenge) -> String?

    /// The realm that separates protection spaces; nil if the whole origin is one space.
    func realm(of challenge: Challenge) -> String?

    /// The paths of `origin` for which an answer to `challenge` may be reused; empty without any. `challengedTarget` is
    /// the target of the challenged request, in origin-form.
    func scopes(of challenge: Challenge, at origin: Origin, challengedTarget: String) -> [PathScope]

    /// Whether a credential that this scheme cannot carry is of no use to `other` in the same space either.
    func usesSameCredential(as other: any Authenticator) -> Bool

    /// The decision about the credential that answers `request`, before the breaker's decision.
    func proof<Proof>(for request: CredentialRequest, from source: some ProofSource<Proof>) -> Proof

    /// How the breaker knows the credential in `space`. Nil if no failure with it locks an account, so that the breaker
    /// is not asked.
    func permitKey(of credential: CredentialReference, in space: AuthenticationSpace) -> Breaker.Key?

    /// The check whether the credential has changed since the breaker refused it; nil if only a person can change it.
    func secondLook(for credential: CredentialReference) -> SecondLook?

    /// The reason that the scheme cannot carry the credential, or nil.
    func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String?

    /// Returns the reply to `challenge`. Throws `unusableCredential` if the scheme cannot carry the credential, and
    /// `unsupportedChallenge` if the challenge requires something that is not implemented.
    func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply

    /// Starts a dialogue, after ``reply(to:with:_:)`` has returned ``Reply/dialogue``.
    func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue

    /// Whether one of `challenges`, the response to a request with our answer to `answered`, is about that answer: it
    /// is for the same space.
    func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool

    /// Interprets a challenge to a request that carried our answer.
    func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict

    /// Whether ``acceptance(_:)`` must examine a response with this status that accepts an answer. `hasInformation`:
    /// whether it has information fields. A response that is not examined without them is examined with them, or never.
    func verifiesAcceptance(ofStatus status: Int, hasInformation: Bool) -> Bool

    /// Examines a response that is not a challenge. Called only if ``verifiesAcceptance(ofStatus:hasInformation:)``.
    func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict

    /// Returns the answer that may be sent in the same space before the next challenge, after `answer` has been
    /// accepted.
    func preemption(after answer: Answer) -> Preemption
}

/// The form of a reply to a challenge.
package enum Reply: Sendable {
    /// One field is the whole answer.
    case answer(Answer)
    /// A ``TokenDialogue`` makes one token after another.
    case dialogue
}

/// A challenge in response to a request with our answer.
package struct RepeatedChallenge: Sendable {
    /// All challenges of the response.
    package let challenges: [Challenge]
    /// The challenge that was answered.
    package let answered: Challenge
    package let answer: Answer
    /// The field that was sent: for `Answer.perRequest`, the one computed for this request.
    package let sent: AuthorizationField?
    /// Whether the answer was a token to which the dialogue expects a reply.
    package let expectsToken: Bool
    /// Whether the answer was sent before any challenge to this request: it answered an earlier one.
    package let isUnasked: Bool
    package let source: ChallengeSource
}

extension RepeatedChallenge {
    /// The server's next token, if the dialogue of `authenticator` expects one; otherwise the answer was rejected.
    package func nextToken(of authenticator: some Authenticator) -> ChallengeVerdict {
        guard expectsToken else { return .rejected }
        let tokens = challenges.filter { $0.isOf(authenticator.schemeName) }.compactMap(\.token68)
        guard let first = tokens.first else { return .insufficient(source.notContinued(authenticator.name)) }
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
    /// The server rejects the credential itself, for any request.
    case invalid
    /// The credential is right, but does not give access to this request, for the given reason. The response is handed
    /// back to the client.
    case insufficient(Refusal)
    /// The credential may be right, but the answer is out of date (RFC 7616 §3.3). The renewed answer is sent once.
    case stale(Answer)
    /// The server asks for a different answer. It is made with the same credential, and sent once. `isStale`: the
    /// server says that the credential is right (RFC 7616 §3.3).
    case asksAnew(isStale: Bool)
    /// The dialogue continues with the server's token.
    case nextToken([UInt8])
    /// None of these: the challenge is handed back to the client for this reason, and the credential does not count as
    /// rejected.
    case handBack(Refusal)
}

/// A response that accepts our answer, unless it fails to prove that the server also knows the secret.
package struct AcceptingResponse: Sendable {
    package let challenge: Challenge
    package let answer: Answer
    /// The field that was sent.
    package let sent: AuthorizationField?
    /// The values of the challenge field: Negotiate carries its last token there (RFC 4559 §5).
    package let challengeFields: [ChallengeField]
    /// The values of `Authentication-Info`, or `Proxy-Authentication-Info` (RFC 7615).
    package let informationFields: [String]
    package let source: ChallengeSource
}

extension AcceptingResponse {
    /// The last token of a dialogue with the scheme name `word`, if the response has one (RFC 4559 §5).
    package func lastToken(of word: String) -> AcceptanceVerdict {
        let challenges: [Challenge]
        do {
            challenges = try ChallengeParser.parse(fields: challengeFields)
        } catch {
            let isAbsent = challengeFields.allSatisfy {
                !String(decoding: $0.octets, as: UTF8.self).lowercased().hasPrefix(word.lowercased())
            }
            return isAbsent ? .accepted : .unproved("the challenge field cannot be read")
        }
        let own = challenges.filter { $0.isOf(word) }
        guard !own.contains(where: { $0.isCut && $0.token68 == nil }) else {
            return .unproved("the challenge field cannot be read")
        }
        let tokens = own.compactMap(\.token68)
        guard let first = tokens.first else { return .accepted }
        guard tokens.count == 1 else { return .unproved("there are \(tokens.count) tokens") }
        guard let token = Base64.decode(first) else { return .unproved("the token is not Base64") }
        return .finalToken(token)
    }
}

/// The result of examining a response that is not a challenge.
package enum AcceptanceVerdict: Sendable {
    case accepted
    /// Accepted, but the server's proof is incomplete or cannot be read, for the given reason. Servers need not prove
    /// anything, so this counts as no proof.
    case unproved(String)
    /// The dialogue must verify the server's last token.
    case finalToken([UInt8])
    /// The server's proof is wrong, for the given reason: an impostor may have answered.
    case forged(String)
    /// As in ``ChallengeVerdict``.
    case invalid
    /// As in ``ChallengeVerdict``.
    case insufficient(Refusal)
    /// As in ``ChallengeVerdict``: the response says nothing about the credential, and is delivered with this reason.
    case handBack(Refusal)
}

/// The answer that may be sent before a challenge in a space that has accepted an answer.
package enum Preemption: Equatable, Sendable {
    /// Nothing.
    case none
    /// The answer, with each request (RFC 7617 §2.2, RFC 7616 §3.6).
    case answer(Answer)
    /// The first token of a new dialogue, which saves the round trip of the first challenge. The credential is still
    /// requested. The server must reply to the token, so that a request with content does not carry it.
    case dialogue
    /// The same, but in most dialogues the first token is the only one, and the request carries it with its content.
    case token
}

extension Authenticator {
    package func shortcoming(of challenge: Challenge) -> String? {
        challenge.realm == nil && !canAnswer(challenge) ? "without a realm" : nil
    }

    package var name: String { schemeName }
    package var bindsConnection: Bool { false }
    package var answersEachRequest: Bool { false }
    package var usesTicket: Bool { false }
    package func alsoChallenges(withStatus status: Int) -> Bool { false }
    package func usesSameCredential(as other: any Authenticator) -> Bool { true }
    package var usesChannelBinding: Bool { false }
    package var sendsPassword: Bool { false }
    package var requiresTLS: Bool { false }
    package var verifiesAcceptance: Bool { false }
    package func verifiesAcceptance(ofStatus status: Int, hasInformation: Bool) -> Bool { verifiesAcceptance }
    package func canAnswer(_ challenge: Challenge) -> Bool { true }
    package func realm(of challenge: Challenge) -> String? { challenge.realm }

    /// The directory of the challenged path and everything below it.
    package func scopes(of challenge: Challenge, at origin: Origin, challengedTarget: String) -> [PathScope] {
        PathScope(challengedPath: challengedTarget).map { [$0] } ?? []
    }

    package func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue {
        throw AuthenticationError(.unsupportedChallenge, "\(name) is not a dialogue")
    }

    /// Every repeated challenge is a rejection.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict { .rejected }
    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict { .accepted }

    /// The protection space of `challenge` at `origin`.
    package func space(of challenge: Challenge, at origin: Origin) -> AuthenticationSpace {
        AuthenticationSpace(origin: origin, realm: realm(of: challenge), scheme: scheme)
    }

    package func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        challenges.contains { $0.isOf(schemeName) && realm(of: $0) == realm(of: answered) }
    }
}
