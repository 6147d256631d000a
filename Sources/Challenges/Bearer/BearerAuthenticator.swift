// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Bearer tokens (RFC 6750), over TLS only (§5.3). Uses the `Authorization` field and neither of the other two methods
/// (§2.2 and §2.3). Does not obtain or refresh tokens.
package final class BearerAuthenticator: Authenticator {
    package static let shared = BearerAuthenticator("Bearer")
    /// Reads the errors in challenges of ``DPoPAuthenticator``, which mean the same.
    static let dpop = BearerAuthenticator(DPoPAuthenticator.name)

    package let schemeName: String
    package var scheme: AuthenticationScheme { .bearer }
    package var requiresTLS: Bool { true }

    private init(_ schemeName: String) { self.schemeName = schemeName }

    /// §3 requires a parameter, but some servers send the scheme alone.
    package func canAnswer(_ challenge: Challenge) -> Bool { challenge.token68 == nil }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        do throws(AuthenticationError) {
            _ = try token(credential)
            return nil
        } catch {
            return error.detail
        }
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        .answer(.fixed(AuthorizationField(scheme: schemeName, token68: try token(credential))))
    }

    /// Throws `unusableCredential` if the credential is not a token, is bound to a key (RFC 9449 §7.1), or has other
    /// characters than §2.1 permits, such as a line break.
    private func token(_ credential: EnrolledCredential) throws(AuthenticationError) -> Secret {
        let enrolled = try credential.token(for: name)
        guard enrolled.bound == nil else {
            throw AuthenticationError(
                .unusableCredential, "the token is bound to a key (DPoP), and is not sent as a bearer token")
        }
        let token = enrolled.token
        guard TokenCredential.isToken(token) else {
            throw AuthenticationError(.unusableCredential, "the token has a character that Bearer cannot send")
        }
        return token
    }

    /// Only a challenge without an error, or with the error `invalid_token`, rejects the token itself (§3.1). Other
    /// codes require something else, such as a ``StepUp``, and do not count against the token.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        let challenges = repeated.challenges.filter { $0.isOf(schemeName) }
        let challenge = challenges.first { $0.realm == repeated.answered.realm } ?? challenges.first
        switch challenge.flatMap(BearerError.init) {
        case .invalidToken: return .invalid
        case .insufficientScope(let scope): return .insufficient(BearerError.refusal(lacking: scope, repeated.source))
        case .stepUp(let stepUp): return .insufficient(BearerError.refusal(lacking: stepUp, repeated.source))
        case .invalidRequest: return .handBack(Self.invalidRequest(repeated.source))
        case .other(let code): return .handBack(Self.says(code, repeated.source))
        case nil: return .rejected
        }
    }

    /// Errors should come with status 400 or 403 (§3.1).
    package func verifiesAcceptance(ofStatus status: Int, hasInformation: Bool) -> Bool { status >= 400 }

    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict {
        guard let challenges = try? ChallengeParser.parse(fields: response.challengeFields) else { return .accepted }
        switch challenges.lazy.filter({ $0.isOf(self.schemeName) }).compactMap(BearerError.init).first {
        case .invalidToken: return .invalid
        case .insufficientScope(let scope): return .insufficient(BearerError.refusal(lacking: scope, response.source))
        case .stepUp(let stepUp): return .insufficient(BearerError.refusal(lacking: stepUp, response.source))
        case .invalidRequest: return .handBack(Self.invalidRequest(response.source))
        case .other(let code): return .handBack(Self.says(code, response.source))
        case nil: return .accepted
        }
    }

    private static func says(_ code: String, _ source: ChallengeSource) -> Refusal {
        "the \(source.name) does not accept the token for this request (\(code))"
    }

    private static func invalidRequest(_ source: ChallengeSource) -> Refusal {
        "the \(source.name) calls the request invalid (invalid_request)"
    }

    /// An error may leave out the realm (RFC 6750 §3).
    package func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        challenges.contains { challenge in
            guard challenge.isOf(schemeName) else { return false }
            return challenge.realm == answered.realm || challenge.realm == nil && challenge.parameter("error") != nil
        }
    }

    package func preemption(after answer: Answer) -> Preemption { .answer(answer) }
}
