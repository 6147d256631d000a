// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering

extension ChallengeController {
    /// Reports the events of a proxy that uses this controller.
    package var observer: ChallengeObserver {
        ChallengeObserver { [weak self] news in
            guard let self else { return }
            guard
                let event = ChallengeEvent(
                    news, isEnabled: isIntegratedAuthenticationEnabled, under: keeper.policy.current)
            else { return }
            listeners.tell(event)
        }
    }
}

extension ChallengeEvent {
    /// Converts an event of the proxy. While integrated authentication is switched off, there is no failed check to
    /// report. Nil for an event of the proxy that is not about a challenge.
    init?(_ news: ChallengeObserver.News, isEnabled: Bool, under policy: @autoclosure () -> Policy) {
        switch news {
        case .answered(let space, let name, _):
            self = .answered(ProtectionSpace(space), with: name)
        case .rejected(let space, let name, _):
            self = .rejected(ProtectionSpace(space), credential: name)
        case .handedBack(let origin, let challenge, let checks, let rule, _):
            let space = ProtectionSpace(
                scheme: origin.scheme.rawValue, host: origin.host, port: Int(origin.port), realm: challenge?.realm,
                authenticationMethod: challenge.map { AuthenticationMethod(scheme: $0.scheme) } ?? .clientCertificate)
            let request = UnansweredRequest(origin, rule, challenge)
            self = .handedBack(
                space, isEnabled ? ChallengeError(checks, of: request, under: policy(), isEnabled: true) : nil)
        case .answeredUnasked, .untrusted, .verified, .tunnelled, .refused, .unreached, .distrusted:
            return nil
        }
    }
}

extension AuthenticationMethod {
    /// Converts a scheme name (RFC 9110 §11.1), ignoring case.
    init(scheme: String) {
        switch scheme.lowercased() {
        case "basic": self = .basic
        case "digest": self = .digest
        case "ntlm": self = .ntlm
        case "negotiate": self = .negotiate
        case "bearer": self = .bearer
        default: self = .other(scheme)
        }
    }
}
