// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignParents
import CountersignUpstream
import NIOCore

/// The user name and password of a listed SOCKS parent on one connection, and the breaker's permission to send them.
///
/// The permission is requested when the connection is established, and ends with the tunnel at the latest. A connection
/// waits while another one tries the credential.
final class SOCKSExchange: SOCKSAnswering {
    private let parent: ParentProxy
    private let services: LoopServices
    private var permit: BreakerAttempt?
    /// The client has left, and the parent's verdict is awaited for the breaker alone.
    private var isLate = false
    /// Waits for the breaker.
    private var completion: ((SOCKSOffer) -> Void)?

    init(_ parent: ParentProxy, _ services: LoopServices) {
        self.parent = parent
        self.services = services
    }

    func begin(completion: @escaping (SOCKSOffer) -> Void) {
        self.completion = completion
        decide()
    }

    func sent() { permit?.awaitsVerdict = true }

    func judged(_ verdict: SOCKSVerdict) {
        switch verdict {
        case .accepted: permit?.end(.accepted)
        case .rejected: permit?.end(.rejected)
        case .unanswered: permit?.end(.unanswered)
        }
        permit = nil
    }

    func clientLeft() -> Bool {
        guard let permit, permit.awaitsVerdict, !isLate, !services.isStopped,
            services.lateVerdicts < LateVerdict.maximumCount
        else { return false }
        isLate = true
        services.lateVerdicts += 1
        return true
    }

    func ended() {
        if isLate { services.lateVerdicts -= 1 }
        isLate = false
        completion = nil
        permit = nil
    }

    private func decide() {
        // The tunnel may have been abandoned while it waited.
        guard completion != nil else { return }
        guard let (credential, key) = listedCredential else { return offer(.nothing(reason: nil)) }
        let breaker = services.shared.breaker
        let exchange = NIOLoopBound(self, eventLoop: services.loop)
        let permission = breaker.request(key) { [gate = services.gate] in gate.execute { exchange.value.decide() } }
        switch permission {
        case .wait: break
        case .refused(let reason), .unsuitable(let reason): offer(.nothing(reason: reason.text))
        case .permitted(let attempt):
            permit = BreakerAttempt(key.used(by: attempt), permittedBy: breaker)
            offer(.credential(credential))
        }
    }

    private func offer(_ offer: SOCKSOffer) {
        let completion = self.completion
        self.completion = nil
        completion?(offer)
    }

    /// The credential of the parent's line, unless that has none which answers it.
    private var listedCredential: (SOCKS5Client.Credential, Breaker.Key)? {
        let policy = services.shared.policy.current
        let site = parent.site
        guard case .answer(let rule) = policy.sites.verdict(for: site), rule.answer.contains(.basic),
            case .useCredential(.password(let password)) =
                policy.credentialDecision(for: rule, at: site, scheme: .basic),
            let credential = SOCKS5Client.Credential(user: Secret(utf8: password.user), password: password.password)
        else { return nil }
        let space = AuthenticationSpace(origin: site, realm: "SOCKS", scheme: .basic)
        return (credential, Breaker.Key(space: space, credential: password.reference))
    }
}
