// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignVault

/// The home and vault that a renewal works on, its clock, and the observer of its progress.
struct RenewalContext: Sendable {
    let home: Home
    let vault: OpenVault
    /// As ``VaultOperations/renewals``.
    let renewals: SignInRenewals?
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let report: @Sendable (RenewalProgress) -> Void

    /// Writes the chain's file again if it differs from the vault's copy, and returns whether it was written.
    @discardableResult
    func repairFile(of name: String) throws -> Bool {
        let stored = StoredIdentity(named: name, in: vault.contents, home: home, readsTokens: false)
        guard let chain = stored.chain, stored.fileFault != nil else { return false }
        try home.identityChain(named: name).replace(with: Array(chain.map(\.pem).joined().utf8))
        return true
    }
}
