// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSignIn
import CountersignVault

// A wipe is a sign-out that completes itself. Its first step records the intent in the vault (kind 22), with all that
// the last steps need; from then on, no challenge of the sign-in is answered. Each step can be repeated, so whoever
// finds the record begins again: `countersign wipe`, or `serve` when it starts and from time to time. The record is
// removed by the last step.

extension VaultOperations {
    /// Returns `signedOut`, or `removed` if there is neither a sign-in of that name nor a wipe of one.
    func wipe(_ name: String, _ dialogue: OperationDialogue) throws -> VaultResult {
        guard let vault else { return .removed(count: 0, known: []) }
        guard vault.contents.signIns[name] != nil || vault.contents.wipes[name] != nil else {
            return .removed(count: 0, known: Set(vault.contents.signIns.keys))
        }
        if vault.contents.wipes[name] == nil {
            let lock = try renewalLock(name, dialogue, patience: Self.renewalPatience)
            defer { withExtendedLifetime(lock) {} }
            let time = now()
            try vault.update { contents in
                guard var record = contents.signIns[name] else { return }
                let scope = (try? SignInProfile(Array(record.profile.utf8)))?.session
                try contents.setWipe(
                    WipeRecord(
                        name: name, identifier: record.identifier, begun: time,
                        sites: record.sites + (record.formerSites ?? []), sessionGroup: scope?.group ?? "",
                        sessionHost: scope?.host.text ?? ""))
                record.ended = SignInRecord.isSigningOut
                try contents.updateSignIn(record)
            }
        }
        guard let wipe = vault.contents.wipes[name] else {
            return .removed(count: 0, known: Set(vault.contents.signIns.keys))
        }
        return .signedOut(try complete(wipe, dialogue))
    }

    /// Completes the wipes that were interrupted, and returns the result of each. Waits for another process that is
    /// renewing such a sign-in or wiping it.
    package func completeWipes(_ dialogue: OperationDialogue = .silent) throws -> [(name: String, result: SignedOut)] {
        guard let vault, !vault.contents.wipes.isEmpty else { return [] }
        return try vault.contents.wipes.values.sorted { $0.name < $1.name }.map { wipe in
            (wipe.name, try complete(wipe, dialogue))
        }
    }

    private func complete(_ wipe: WipeRecord, _ dialogue: OperationDialogue) throws -> SignedOut {
        let vault = try opened()
        var result = SignedOut(
            isRevoked: true, warning: nil, page: nil, userAgent: nil, sites: wipe.sites, profiles: [])
        // Another sign-in of that name is not this one, and what it has stays.
        if vault.contents.signIns[wipe.name] != nil,
            case .signedOut(let done) = try removeSignIn(wipe.name, identifier: wipe.identifier, dialogue)
        {
            result = done
        }
        if try vault.update({ $0.signIns[wipe.name] == nil }) {
            try SignInSites(home: home, name: wipe.name).set([], replacing: wipe.sites)
            try removeLeftFile(of: wipe.name, in: vault)
            if !wipe.sessionGroup.isEmpty {
                for other in vault.contents.signIns.values {
                    try SignInSites(home: home, name: other.name).restoreSession(of: other.sites, without: wipe.sites)
                }
            }
        }
        try vault.update { $0.removeWipe(named: wipe.name) }
        return result
    }
}
