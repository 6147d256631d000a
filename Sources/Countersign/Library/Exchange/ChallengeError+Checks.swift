// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges

extension ChallengeError {
    /// The error for the first of `checks` that failed.
    init(_ checks: ThreeChecks, of request: UnansweredRequest, under policy: Policy, isEnabled: Bool) {
        let refusal = checks.refusal ?? "not answered"
        func error(_ code: Code, _ refusal: Refusal, hint: String? = nil) -> ChallengeError {
            ChallengeError(code, refusal, of: request, under: policy, hint: hint)
        }
        if !isEnabled {
            self.init(
                .switchedOff, "integrated authentication is switched off",
                hint: "set `isIntegratedAuthenticationEnabled` of the controller")
            remedy = .enableController
        } else if !checks.site.passed, request.rule != nil {
            // For a listed site, only the certificate can fail the check.
            self = error(.serverNotTrusted, refusal, hint: Self.trustHint)
        } else if !checks.site.passed {
            self = error(.siteNotAllowed, refusal.after("\(request.origin): "))
        } else if checks.challenge?.passed == false {
            self = error(.methodNotAnswered, refusal)
        } else {
            self = error(.nothingToAnswerWith, refusal)
        }
    }

    package static let trustHint =
        "the server's certificate is at fault, or its authority is missing in the home's Certs/anchors"
}
