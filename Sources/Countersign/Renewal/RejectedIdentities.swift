// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
import CountersignVault
import Synchronization

/// Reacts to origins that reject or accept a client certificate: replaces a rejected certificate by the previous one or
/// by a new one, and discards the previous one when the new one has been accepted.
package final class RejectedIdentities: Sendable {
    private let renewals: RenewalKeeper
    private let state = Mutex(State())

    /// After a rejection, an identity is replaced at most once in this many seconds.
    private static let intervalSeconds: Int64 = 300
    /// How long a request waits for a replacement, which continues in the background after that.
    private static let patience = Duration.seconds(60)
    /// The failures recorded for an identity whose previous certificate was restored: enough for the longest delay.
    private static let failuresAfterRestoring: UInt32 = 10
    /// The largest number of fingerprints that are remembered.
    private static let fingerprintLimit = 1024

    private struct State: Sendable {
        /// When the last replacement began, by name.
        var lastReplacement: [String: Int64] = [:]
        /// Replacements in progress, by name.
        var running: [String: Task<Bool, Never>] = [:]
        /// SHA-256 fingerprints of the leaves that an origin has rejected, and of those that one has accepted.
        var rejectedLeaves: Set<[UInt8]> = []
        var acceptedLeaves: Set<[UInt8]> = []
    }

    package init(renewals: RenewalKeeper) {
        self.renewals = renewals
    }

    /// Cancels the replacements in progress.
    package func cancel() {
        state.withLock { $0.running.values.forEach { $0.cancel() } }
    }

    /// Replaces an identity that an origin has rejected, and returns whether another certificate of that name is in
    /// effect now. Concurrent calls for one identity share one replacement.
    package func identityRejected(_ identity: Identity) async -> Bool {
        let (name, leaf) = (identity.name, identity.leaf.sha256Fingerprint)
        if isReplaced(name, leaf) { return true }
        let task = state.withLock { state -> Task<Bool, Never>? in
            if state.rejectedLeaves.count < Self.fingerprintLimit { state.rejectedLeaves.insert(leaf) }
            if let running = state.running[name] { return running }
            let now = renewals.now()
            if let last = state.lastReplacement[name], abs(now - last) < Self.intervalSeconds { return nil }
            state.lastReplacement[name] = now
            let task = Task.detached {
                let isReplaced = await self.replace(name, leaf)
                self.state.withLock { $0.running[name] = nil }
                return isReplaced
            }
            state.running[name] = task
            return task
        }
        guard let task else { return false }
        return await task.value(within: Self.patience) ?? false
    }

    /// Discards the certificate that `identity` replaced, now that an origin has accepted the new one.
    package func identityAccepted(_ identity: Identity) {
        let leaf = identity.leaf.sha256Fingerprint
        let isFirst = state.withLock { state in
            if state.acceptedLeaves.count >= Self.fingerprintLimit { state.acceptedLeaves = [] }
            return state.acceptedLeaves.insert(leaf).inserted
        }
        guard isFirst else { return }
        Task.detached { [renewals] in
            guard let vault = renewals.policyKeeper.vault,
                vault.contents.enrollments[identity.name]?.previous != nil
            else { return }
            do {
                try renewals.renewal(vault).discardPrevious(of: identity.name, leafSHA256: leaf)
            } catch {
                renewals.report("cannot discard the previous certificate of identity \"\(identity.name)\"", error)
            }
        }
    }

    private func isReplaced(_ name: String, _ leaf: [UInt8]) -> Bool {
        guard case .open(_, _, let identities) = renewals.policyKeeper.policy.current.enrolled,
            let present = identities.first(where: { $0.name == name })
        else { return false }
        return present.leaf.sha256Fingerprint != leaf
    }

    /// Restores the previous certificate if it is valid and no origin has rejected it; otherwise requests a new one.
    private func replace(_ name: String, _ leaf: [UInt8]) async -> Bool {
        guard let vault = await renewals.currentVault(), let record = vault.contents.enrollments[name] else {
            return false
        }
        if let previous = record.previous?.leaf, previous.isValid(at: renewals.now()),
            !state.withLock({ $0.rejectedLeaves.contains(previous.sha256Fingerprint) })
        {
            do {
                let isRestored = try renewals.renewal(vault).restorePrevious(
                    name, from: leaf, failures: Self.failuresAfterRestoring)
                if isRestored {
                    renewals.warn(
                        "an origin rejected the new certificate of identity \"\(name)\": using the previous one again")
                    await renewals.applyChange()
                    return isReplaced(name, leaf)
                }
            } catch {
                renewals.report("cannot restore the previous certificate of identity \"\(name)\"", error)
            }
        }
        renewals.notice("an origin rejected identity \"\(name)\": requesting a new certificate")
        return await renewals.refresh(name, in: vault, from: leaf, patience: Self.patience)
    }
}
