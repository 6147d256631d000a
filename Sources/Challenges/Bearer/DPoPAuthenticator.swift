// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// Access tokens that are bound to a key of ours (RFC 9449 §7), over TLS only. A form of Bearer: the same keyword
/// permits it, the same credential answers, and the errors mean the same. Each request has a proof of its own: with the
/// nonce of the response that it answers, or else the one that the origin has given last. An origin that asks for a
/// nonce gets a second request, and no third (§9).
package final class DPoPAuthenticator: Authenticator {
    package static let shared = DPoPAuthenticator()

    private let bearer = BearerAuthenticator.dpop

    package static let name = "DPoP"

    package var schemeName: String { Self.name }
    package var scheme: AuthenticationScheme { .bearer }
    package var requiresTLS: Bool { true }

    /// `algs` names the algorithms of proofs that the server accepts (§7.1).
    package func canAnswer(_ challenge: Challenge) -> Bool {
        challenge.token68 == nil && challenge.parameter("algs").map(Self.acceptsES256) ?? true
    }

    private static func acceptsES256(_ algorithms: String) -> Bool {
        algorithms.split(separator: " ").contains { $0.utf8.elementsEqual("ES256".utf8) }
    }

    package func shortcoming(of challenge: Challenge) -> String? { canAnswer(challenge) ? nil : "without ES256" }

    /// A bearer token may answer the Bearer challenge beside this one.
    package func usesSameCredential(as other: any Authenticator) -> Bool { !(other is BearerAuthenticator) }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        do throws(AuthenticationError) {
            _ = try bound(credential)
            return nil
        } catch {
            return error.detail
        }
    }

    private func bound(_ credential: EnrolledCredential) throws(AuthenticationError) -> BoundToken {
        guard let bound = try credential.token(for: name).bound else {
            throw AuthenticationError(
                .unusableCredential, "the token is not bound to a key, and DPoP needs one that is")
        }
        return bound
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        .answer(.perRequest(DPoPSigner(try bound(credential), at: context.origin)))
    }

    /// A server that asks for a nonce has not judged the token (§9).
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        let asksForNonce = repeated.challenges.contains {
            $0.isOf(schemeName) && $0.parameter("error") == Self.nonceError
        }
        return asksForNonce ? .stale(repeated.answer) : bearer.verdict(on: repeated)
    }

    package static let nonceError = "use_dpop_nonce"

    package func verifiesAcceptance(ofStatus status: Int, hasInformation: Bool) -> Bool {
        bearer.verifiesAcceptance(ofStatus: status, hasInformation: hasInformation)
    }

    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict { bearer.acceptance(response) }

    package func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        bearer.isAsked(again: answered, by: challenges)
    }

    package func preemption(after answer: Answer) -> Preemption { .answer(answer) }
}

/// Signs for the request that carries the answer.
private final class DPoPSigner: RequestSigner {
    private let bound: BoundToken
    private let origin: Origin

    init(_ bound: BoundToken, at origin: Origin) {
        self.bound = bound
        self.origin = origin
    }

    /// The target URI (RFC 9110 §7.1). That of `OPTIONS *` has no path (RFC 9112 §3.3).
    private static func address(of target: String, at origin: Origin) -> String {
        "\(origin.scheme.rawValue)://\(origin.authority)\(target == "*" ? "" : target)"
    }

    /// The nonce of an earlier response may have expired.
    func lacksInput(_ inputs: AnswerInputs) -> Bool { inputs.nonceToAnswer == nil }

    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField? {
        // FILETIME begins in 1601.
        let time = Int64(inputs.fileTime / 10_000_000) - 11_644_473_600
        let proof = DPoPProof(
            request.method, Self.address(of: request.target, at: origin), token: bound.token,
            nonce: inputs.nonce(of: origin)
        ).signed(with: bound.key, at: time, random: inputs.random(DPoPProof.randomByteCount))
        guard let proof else { return nil }
        return AuthorizationField(
            scheme: DPoPAuthenticator.name, token68: bound.token, proof: Secret(utf8: proof))
    }
}
