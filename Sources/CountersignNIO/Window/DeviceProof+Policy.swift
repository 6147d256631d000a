// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignSignIn
import CountersignSitePolicy

extension DeviceProof {
    /// The home's identities, only for listed sites with `answer=pkeyauth`, and not for a site with a trust exception
    /// that permits no answers. `now` is in seconds since 1970.
    init(policy: CurrentPolicy, now: @escaping @Sendable () -> Int64) {
        self.init(
            isAnnounced: { origins in
                let policy = policy.current
                return origins.contains { origin in
                    guard let rule = Self.rule(for: origin, policy, now()) else { return false }
                    return policy.hasDevice(for: rule, now: now())
                }
            },
            decide: { challenge, origin in
                let policy = policy.current
                guard let rule = Self.rule(for: origin, policy, now()) else {
                    return .none(reason: "the list has no line with answer=pkeyauth for it")
                }
                switch policy.deviceDecision(for: challenge, rule, now: now()) {
                case .useCredential(.device(let device)) where device.certificate != nil: return .certificate(device)
                case .performDefaultHandling(let reason), .rejectProtectionSpace(let reason):
                    return .none(reason: reason.text)
                default: return .none(reason: "no client identity is one that it accepts")
                }
            })
    }

    /// Nil if challenges of the origin that ask for the device are not answered.
    private static func rule(for origin: Origin, _ policy: Policy, _ now: Int64) -> SiteRule? {
        guard origin.scheme == .https,
            case .answer(let rule) = policy.sites.verdict(for: origin, request: nil),
            policy.answersDevice(for: rule), policy.trustExceptions(for: origin, now: now).allSatisfy(\.answers)
        else { return nil }
        return rule
    }
}
