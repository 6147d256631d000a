// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension Enrollment {
    /// Gives the plan's client its key, or its secret, if it needs one: the program's, else the stored one. The vault
    /// has been opened.
    func authenticate() async throws {
        var plan = plan
        if plan.profile.clientIdentity != nil || plan.profile.usesDPoP && plan.demand != nil, !plan.profile.usesBroker {
            let keyed = try await signIns.vault.blocking { [plan, vault = signIns.vault] in
                var keyed = plan
                let opened = try vault.opened(creates: false)
                try VaultOperations(home: vault.home, vault: opened, now: ChallengeController.now).authenticate(&keyed)
                return keyed
            }
            present.withLock { $0 = keyed }
            plan = keyed
        }
        guard plan.profile.clientAuthentication.needsSecret, !plan.profile.usesBroker else { return }
        let stored = try await signIns.vault.blocking { [plan, vault = signIns.vault] in
            try vault.opened(creates: false).flatMap {
                VaultOperations(home: vault.home, vault: $0, now: ChallengeController.now).clientSecret(of: plan)
            }
        }
        guard let secret = clientSecret?.secret ?? stored else {
            throw SignInError(
                .profile, "the client \(plan.profile.request.client.identifier) has a secret, which is not known here",
                hint: "set Enrollment.clientSecret")
        }
        try present.withLock { try $0.authenticate(with: secret) }
    }
}
