// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignVault
import Dispatch
import Logging
import Synchronization

/// Changes that were interrupted.
extension SignInRenewals {
    /// Seconds between two attempts to complete a wipe.
    private static let wipeInterval: Int64 = 60

    /// Completes interrupted changes of sign-ins to the list of sites. Reads no file without such a sign-in.
    package func completeLists() {
        guard let vault = openVault() else { return }
        let (signIns, time) = (vault.contents.signIns.values, now())
        for record in signIns where record.formerSites != nil {
            guard !state.withLock({ $0.listFailures.isPaused(record, at: time) }) else { continue }
            do {
                try VaultOperations(home: home, vault: vault, now: now).finishSignIn(record.name)
                state.withLock { $0.listFailures.forget(record.name) }
            } catch {
                let isFirst = state.withLock { $0.listFailures.note(record, at: time) == 1 }
                guard isFirst else { continue }
                logger.warning(
                    "the sites of the sign-in \"\(record.name)\" cannot be added to the list: \(Self.text(error))")
            }
        }
    }

    /// Begins to complete the wipes that were interrupted, which asks their providers to revoke tokens. Reads no file.
    package func completeWipes() {
        guard let vault = openVault(), !vault.contents.wipes.isEmpty else { return }
        let time = now()
        state.withLock { state in
            guard !state.isStopped, state.wiping == nil, time - state.lastWipe >= Self.wipeInterval else { return }
            state.lastWipe = time
            state.wiping = Task.detached { [self] in
                let isAbandoned = Atomic(false)
                await withTaskCancellationHandler {
                    try? await onQueue { [self] in
                        completeWipes(in: vault) { isAbandoned.load(ordering: .relaxed) }
                    }
                } onCancel: {
                    isAbandoned.store(true, ordering: .relaxed)
                }
                self.state.withLock { $0.wiping = nil }
            }
        }
    }

    private func completeWipes(in vault: OpenVault, isAbandoned: @escaping @Sendable () -> Bool) {
        let dialogue = OperationDialogue(report: { _ in }, isAbandoned: isAbandoned)
        for (name, result) in VaultOperations(home: home, vault: vault, now: now).completeWipes(dialogue) {
            switch result {
            case .success(let done):
                logger.notice("completed the wipe of \"\(name)\"")
                guard let warning = done.warning else { continue }
                logger.warning("the provider has not revoked the tokens of \"\(name)\": \(warning)")
            case .failure where isAbandoned():
                // The proxy is stopping; the next one completes it.
                break
            case .failure(let error):
                logger.warning("the wipe of \"\(name)\" cannot be completed: \(Self.text(error))")
            }
        }
        changed()
    }
}
