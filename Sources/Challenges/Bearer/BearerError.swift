// SPDX-License-Identifier: Apache-2.0

/// The error that a resource server reports for a request with a token (RFC 6750 §3 and §3.1).
package enum BearerError: Equatable, Sendable {
    /// `invalid_request`: says nothing about the token.
    case invalidRequest
    /// `invalid_token`: expired, revoked or malformed.
    case invalidToken
    /// `insufficient_scope`, with the scope that is needed, if the server names one.
    case insufficientScope(String?)
    /// The token is valid, and the server requires more of it than scopes: `insufficient_claims`,
    /// `insufficient_user_authentication` (RFC 9470 §3), or `invalid_token` with `claims`, as Microsoft's services
    /// report a revoked session.
    case stepUp(StepUp)
    /// Another error code, as it may be shown.
    case other(String)

    /// The longest code that is repeated in messages, in bytes.
    private static let codeBytes = 60

    /// The longest scope that is repeated in messages, in bytes.
    static let scopeBytes = 200

    /// Nil if the challenge has no error.
    package init?(_ challenge: Challenge) {
        let error = challenge.parameter("error")
        switch error {
        case "insufficient_claims", "insufficient_user_authentication", "invalid_token":
            if let stepUp = Self.stepUp(challenge) {
                self = .stepUp(stepUp)
            } else {
                self = error.flatMap { $0 == "invalid_token" ? nil : .other($0) } ?? .invalidToken
            }
        case "invalid_request": self = .invalidRequest
        case "insufficient_scope": self = .insufficientScope(Self.scope(of: challenge))
        case nil: return nil
        case .some(let code): self = .other(Self.shown(code))
        }
    }

    /// RFC 6750 §3 permits no quotation mark, backslash or other character than printable ASCII in a code.
    private static func shown(_ code: String) -> String {
        let scalars = code.unicodeScalars.prefix(codeBytes).map { scalar -> Unicode.Scalar in
            (0x20...0x7E).contains(scalar.value) && scalar != "\"" && scalar != "\\" ? scalar : "?"
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// For `insufficient_scope`. A scope that is too long to be shown as a whole names no scopes to ask for.
    static func refusal(lacking scope: String?, _ source: ChallengeSource) -> Refusal {
        let isWhole = scope?.hasSuffix("…") == false
        return Refusal(
            .insufficientToken(StepUp(scopes: isWhole ? Self.scopes(scope) : [])),
            "the token's scope is insufficient" + (scope.map { ": the \(source.name) requires \"\($0)\"" } ?? ""))
    }

    static func refusal(lacking stepUp: StepUp, _ source: ChallengeSource) -> Refusal {
        Refusal(.insufficientToken(stepUp), "the token does not suffice: the \(source.name) \(stepUp.demand)")
    }

    /// What the challenge requires besides or instead of scopes; nil if it names nothing that can be asked for. A value
    /// that cannot be used counts as absent.
    private static func stepUp(_ challenge: Challenge) -> StepUp? {
        var stepUp = StepUp()
        switch challenge.parameter("error") {
        case "insufficient_user_authentication":
            stepUp.acrValues = challenge.parameter("acr_values").flatMap(StepUp.acrValues) ?? []
            stepUp.maxAge = challenge.parameter("max_age").flatMap(StepUp.maxAge)
        default: stepUp.claims = challenge.parameter("claims").flatMap(StepUp.claims)
        }
        guard stepUp.isForOneSite else { return nil }
        if let scope = scope(of: challenge), !scope.hasSuffix("…") { stepUp.scopes = scopes(scope) }
        return stepUp
    }

    private static func scopes(_ text: String?) -> [String] { text?.split(separator: " ").map(String.init) ?? [] }

    /// Where the metadata of the resource is, as the parameter `resource_metadata` of a Bearer or DPoP challenge says
    /// (RFC 9728 §5.1); as received. The challenge with the error counts before others.
    package static func resourceMetadata(in fields: [String]) -> String? {
        guard let parsed = try? ChallengeParser.parse(fields: fields) else { return nil }
        let challenges = parsed.filter { $0.isOf("Bearer") || $0.isOf(DPoPAuthenticator.name) }
        let challenge =
            challenges.first { $0.parameter("error")?.hasPrefix("insufficient_") == true } ?? challenges.first
        return challenge?.parameter("resource_metadata")
    }

    /// The `scope` parameter, shortened to ``scopeBytes``. Nil if it has none, or other characters than RFC 6749 §3.3
    /// permits: `%x21 / %x23-5B / %x5D-7E`, and spaces in between.
    private static func scope(of challenge: Challenge) -> String? {
        guard let scope = challenge.parameter("scope"), !scope.isEmpty,
            scope.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
        else { return nil }
        return scope.utf8.count > scopeBytes ? "\(scope.prefix(scopeBytes))…" : scope
    }
}
