// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering

extension ChallengeController {
    /// Asks the delegate about requests of a proxy.
    package var scopeAsker: ScopeAsker {
        ScopeAsker { [scopeQuestions] lack in
            let space = ProtectionSpace(
                scheme: lack.origin.scheme.rawValue, host: lack.origin.host, port: Int(lack.origin.port),
                authenticationMethod: .bearer)
            let question = ScopeQuestions.Lack(
                token: lack.token, stepUp: lack.stepUp, reason: lack.reason, target: lack.target,
                metadata: lack.metadata)
            return scopeQuestions.begin(question, at: space) ? "the person is being asked for it" : nil
        }
    }
}
