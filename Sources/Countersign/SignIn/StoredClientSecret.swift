// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension VaultOperations {
    /// The client's secret in the stored sign-in of the plan's name; nil if that is for another client, provider or
    /// token endpoint, which must not get it. Never answered by a running server: this process has opened the vault.
    package func clientSecret(of plan: SignInPlan) -> Secret? {
        guard let record = vault?.contents.signIns[plan.name], let secret = record.clientSecret,
            let stored = try? SignInProfile(Array(record.profile.utf8)),
            stored.issuer == plan.profile.issuer, stored.metadata == plan.profile.metadata,
            stored.request.client.identifier == plan.profile.request.client.identifier
        else { return nil }
        return secret
    }
}
