// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSignIn
import CountersignVault

// A wipe is a sign-out that completes itself. Its first step records the intent in the vault (kind 22), with all that
// the last steps need; from then on, no challenge of the sign-in is answered. Each step can be repeated, so any process
// that finds the record begins again: `countersign wipe`, or `serve` when it starts and from time to time. The last
// step removes the record.

extension VaultOperations {
    /// Returns `unknown` if there is neither a sign-in of that name nor a wipe of one. A wipe does not
    /// begin unless `isDue` for the sign-in that the vault has by then.
    func wipe(
        _ name: String, if isDue: @Sendable (SignInRecord, VaultContents) -> Bool = { _, _ in true },
        _ dialogue: OperationDialogue
    ) throws -> Named<SignedOut> {
        guard let vault else { return .unknown(known: []) }
        let begun = vault.contents.wipes[name]
        guard begun != nil || vault.contents.signIns[name] != nil else { return .unknown(known: signInNames) }
        let locks = try removalLocks(of: name, in: vault, dialogue)
        let time = now()
        let found = try vault.update { contents -> WipeRecord? in
            // Another process may have completed it meanwhile, and a sign-in that was stored since is not wiped.
            if begun != nil { return contents.wipes[name] }
            guard contents.wipes[name] == nil, var record = contents.signIns[name], isDue(record, contents) else {
                return contents.wipes[name]
            }
            let scope = record.session
            try contents.setWipe(
                WipeRecord(
                    name: name, identifier: record.identifier, begun: time,
                    sites: record.allSites, sessionGroup: scope?.group ?? "",
                    sessionHost: scope?.host.text ?? ""))
            record.ended = SignInRecord.isSigningOut
            try contents.updateSignIn(record)
            return contents.wipes[name]
        }
        if let found { return .done(try complete(found, locks, dialogue)) }
        return begun.map { .done(Self.nothingLeft(of: $0)) } ?? .unknown(known: signInNames)
    }

    /// The outcome of an interrupted wipe.
    package typealias CompletedWipe = (name: String, result: Result<SignedOut, any Error>)

    /// Completes the wipes that were interrupted. A failure of one does not prevent the others. Does not wait: a wipe
    /// that another process is completing, or whose tokens it is renewing, is left for later, and is not in the result.
    package func completeWipes(_ dialogue: OperationDialogue = .silent) -> [CompletedWipe] {
        guard let vault else { return [] }
        return vault.contents.wipes.values.sorted { $0.name < $1.name }.compactMap { wipe in
            do {
                guard let locks = try removalLocksIfFree(of: wipe.name, in: vault) else { return nil }
                // Another process may have completed it meanwhile.
                try vault.reload()
                guard vault.contents.wipes[wipe.name] == wipe else { return nil }
                return (wipe.name, .success(try complete(wipe, locks, dialogue)))
            } catch {
                return (wipe.name, .failure(error))
            }
        }
    }

    /// The caller holds the locks until the record of the wipe is gone, so that no other sign-in of that name is stored
    /// meanwhile.
    private func complete(
        _ wipe: WipeRecord, _ locks: RemovalLocks, _ dialogue: OperationDialogue
    ) throws -> SignedOut {
        let vault = try opened()
        defer { withExtendedLifetime(locks) {} }
        var result = Self.nothingLeft(of: wipe)
        // A different sign-in of that name stays, with all that belongs to it.
        if vault.contents.signIns[wipe.name] != nil,
            let done = try removeSignIn(wipe.name, identifier: wipe.identifier, locks, dialogue).done
        {
            result = done
        }
        if try vault.update({ $0.signIns[wipe.name] == nil }) {
            try SignInSites(home: home, name: wipe.name).set([], replacing: wipe.sites)
            if !wipe.sessionGroup.isEmpty {
                for other in vault.contents.signIns.values {
                    try SignInSites(home: home, name: other.name).restoreSession(of: other.sites, without: wipe.sites)
                }
            }
        }
        try vault.update { $0.removeWipe(named: wipe.name) }
        return result
    }

    private static func nothingLeft(of wipe: WipeRecord) -> SignedOut {
        SignedOut(isRevoked: true, warning: nil, page: nil, userAgent: nil, sites: wipe.sites, profiles: [])
    }
}
