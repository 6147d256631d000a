// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// PKeyAuth, with which Microsoft's sign-in servers ask a device for its certificate if TLS cannot: the device signs a
/// nonce. MS-PKAP describes it for redirects to `urn:http-auth:PKeyAuth`; the challenge form is the one that
/// Microsoft's open-source clients for iOS and Android answer. It proves the device and not a person, so a failure
/// locks no account.
///
/// Over TLS only. A server that knows clients by the request field `x-ms-PKeyAuth: 1.0` challenges with status 401 or
/// 400.
package final class PKeyAuthAuthenticator: Authenticator {
    package static let shared = PKeyAuthAuthenticator()

    static let name = "PKeyAuth"

    package var schemeName: String { Self.name }
    package var scheme: AuthenticationScheme { .pkeyauth }
    package var requiresTLS: Bool { true }

    package func canAnswer(_ challenge: Challenge) -> Bool { !challenge.isCut && PKeyAuthChallenge(challenge) != nil }

    package func shortcoming(of challenge: Challenge) -> String? {
        canAnswer(challenge) ? nil : "without a nonce, Context and Version"
    }

    package func alsoChallenges(withStatus status: Int) -> Bool { status == 400 }

    /// The whole origin is one space.
    package func realm(of challenge: Challenge) -> String? { nil }

    /// A nonce is for one answer.
    package func scopes(of challenge: Challenge, at origin: Origin, challengedTarget: String) -> [PathScope] { [] }

    package func proof<Proof>(for request: CredentialRequest, from source: some ProofSource<Proof>) -> Proof {
        source.device(for: request.offer.challenge)
    }

    /// A failure locks nothing.
    package func permitKey(of credential: CredentialReference, in space: AuthenticationSpace) -> Breaker.Key? { nil }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        if case .device = credential { nil } else { "PKeyAuth needs a device certificate" }
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        guard case .device(let device) = credential else {
            throw AuthenticationError(.unusableCredential, "PKeyAuth needs a device certificate")
        }
        guard let parsed = PKeyAuthChallenge(challenge) else {
            throw AuthenticationError(.unsupportedChallenge, "PKeyAuth without a nonce, Context and Version")
        }
        return .answer(.perRequest(PKeyAuthSigner(PKeyAuthAnswer(parsed, device), at: context.origin)))
    }

    /// The device was not accepted, which says nothing about a person's credential.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        let source = repeated.source.name
        guard !repeated.challenges.isEmpty, !repeated.challenges.contains(where: { $0.isOf(schemeName) }) else {
            return .handBack("the \(source) did not accept the device's answer")
        }
        // Both would be in the same field.
        let schemes = repeated.challenges.prefix(5).map { String($0.scheme.prefix(32)) }.joined(separator: ", ")
        return .handBack(
            "the \(source) asks for \(schemes) after the device's answer, and a request carries one answer")
    }

    package func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        challenges.contains { $0.isOf(schemeName) }
    }

    package func preemption(after answer: Answer) -> Preemption { .none }
}

/// Signs for the request that carries the answer.
private final class PKeyAuthSigner: RequestSigner {
    private let answer: PKeyAuthAnswer
    private let origin: Origin

    init(_ answer: PKeyAuthAnswer, at origin: Origin) {
        self.answer = answer
        self.origin = origin
    }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        let path = request.target.prefix { $0 != "?" }
        // FILETIME begins in 1601.
        let time = Int64(inputs.fileTime / 10_000_000) - 11_644_473_600
        return answer.field(
            audience: "\(origin.scheme.rawValue)://\(origin.authority)\(path)", time: time)
    }
}
