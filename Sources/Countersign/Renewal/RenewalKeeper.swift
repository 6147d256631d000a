// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
import Dispatch
package import Logging
import Synchronization

/// Renews the enrolled identities of a home: checks once per minute which of them are due and requests new certificates
/// for those. Also owns the ``ComplianceKeeper`` of the home, which it starts and stops.
///
/// There must be only one for a home in a process: a ``ChallengeController`` shares its own with every proxy that it
/// runs.
package final class RenewalKeeper: Sendable {
    let policyKeeper: PolicyKeeper
    let now: @Sendable () -> Int64
    let compliance: ComplianceKeeper
    private let logger: Logger
    private let refreshed: (@Sendable (String, (any Error)?) -> Void)?
    private let hasLoggedLock = Atomic(false)
    private let task = Mutex<Task<Void, Never>?>(nil)
    /// Reads files, so that they do not block a thread of the concurrency pool.
    private let queue = DispatchQueue(label: "countersign.renewal")

    /// Logged at level trace at the beginning of each check.
    static let checkMessage = "checking which certificates are due"
    /// The interval between two checks.
    private static let period = Duration.seconds(60)

    /// `now` returns seconds since 1970. `refreshed` is called with the name of each identity for which a renewal
    /// ended: with nil if it has a new certificate, else with the error.
    package init(
        policyKeeper: PolicyKeeper, now: @escaping @Sendable () -> Int64, logger: Logger,
        refreshed: (@Sendable (String, (any Error)?) -> Void)? = nil
    ) {
        self.policyKeeper = policyKeeper
        self.now = now
        self.logger = logger
        self.refreshed = refreshed
        compliance = ComplianceKeeper(policyKeeper: policyKeeper, now: now, logger: logger)
    }

    // MARK: Checking

    /// Checks now, and then periodically until ``stop()`` or until the keeper is released.
    package func start() {
        compliance.start()
        task.withLock { task in
            guard task == nil else { return }
            task = Task.detached { [weak self] in
                while !Task.isCancelled {
                    await self?.refreshDueIdentities()
                    do { try await Task.sleep(for: Self.period) } catch { return }
                }
            }
        }
    }

    package func stop() {
        compliance.stop()
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    /// Repairs the chain files of all enrolled identities, and renews those that are due.
    package func refreshDueIdentities() async {
        logger.trace("\(Self.checkMessage)")
        guard let vault = await currentVault() else { return }
        for name in vault.contents.plannedNames where !Task.isCancelled {
            repairFile(of: name, in: vault)
            let state = RenewalState(named: name, in: vault.contents, home: policyKeeper.home, now: now())
            guard let state, state.isDue, state.nextAttempt <= now() else { continue }
            _ = await refresh(name, in: vault)
        }
    }

    /// The vault, read again; nil while it is locked, which is logged once if there is one.
    func currentVault() async -> OpenVault? {
        await withCheckedContinuation { continuation in
            queue.async { [self] in continuation.resume(returning: readVault()) }
        }
    }

    private func readVault() -> OpenVault? {
        // Another process may have created the vault, or enrolled an identity.
        policyKeeper.refresh()
        guard let vault = policyKeeper.vault else {
            if policyKeeper.isLocked, !hasLoggedLock.exchange(true, ordering: .relaxed) {
                logger.notice(
                    "certificates are not renewed while the vault is locked; run `countersign vault unlock`")
            }
            return nil
        }
        hasLoggedLock.store(false, ordering: .relaxed)
        do {
            try vault.reload()
        } catch {
            logger.warning("certificates are not renewed: \(error.detail)")
            return nil
        }
        return vault
    }

    private func repairFile(of name: String, in vault: OpenVault) {
        do {
            guard try renewal(vault).repairFile(of: name) else { return }
            let file = policyKeeper.home.identityChain(named: name).name
            logger.notice("repaired \(file), the certificate chain of identity \"\(name)\"")
        } catch {
            report("cannot write the certificate chain of identity \"\(name)\"", error)
        }
    }

    // MARK: Renewing one identity

    /// Renews an identity, and returns whether it has a new certificate that is in effect. `leaf` is the SHA-256 of the
    /// certificate to replace, if that is known. If another process is renewing the identity, this waits for
    /// `patience`.
    func refresh(
        _ name: String, in vault: OpenVault, from leaf: [UInt8]? = nil, patience: Duration = .zero
    ) async -> Bool {
        do {
            switch try await renewal(vault).refreshIfUnlocked(name, from: leaf, patience: patience) {
            case .renewed(let leaf):
                logger.notice(
                    "identity \"\(name)\" has a new certificate, valid until \(WallClock.rfc3339(leaf.notAfter))")
                await applyChange()
                policyKeeper.events.tell(.renewed(identity: name))
                refreshed?(name, nil)
                return true
            case .pending(let until):
                logger.info(
                    "the new certificate of identity \"\(name)\" is pending, next request \(WallClock.rfc3339(until))")
            case nil:
                logger.debug("another process is renewing identity \"\(name)\"")
            }
        } catch {
            if error.isCancellation { return false }
            let next = RenewalState(named: name, in: vault.contents, home: policyKeeper.home, now: now())?.nextAttempt
            let retry = next.map { ", next attempt \(WallClock.rfc3339($0))" } ?? ""
            report("cannot renew identity \"\(name)\"\(retry)", error)
            policyKeeper.events.tell(
                .renewalFailed(identity: name, reason: Diagnostic.all(in: error).first?.message ?? "\(error)"))
            refreshed?(name, error)
        }
        return false
    }

    /// Makes a change to the vault's identities take effect in the policy.
    func applyChange() async {
        await withCheckedContinuation { continuation in
            queue.async { [policyKeeper] in
                policyKeeper.refresh(force: true)
                continuation.resume()
            }
        }
    }

    func renewal(_ vault: OpenVault) -> IdentityRenewal {
        IdentityRenewal(
            home: policyKeeper.home, vault: vault, renewals: policyKeeper.signInRenewals, now: now
        ) { [self] progress in
            if let warning = progress.warning { warn("\(warning)") }
        }
    }

    // MARK: Logging

    func notice(_ message: Logger.Message) { logger.notice(message) }

    func warn(_ message: Logger.Message) { logger.warning(message) }

    /// Logs each fault in `error` as the reason for `consequence`.
    func report(_ consequence: String, _ error: any Error) {
        for diagnostic in Diagnostic.all(in: error) {
            logger.warning("\(consequence): \(diagnostic.message)", metadata: diagnostic.hint.map { ["hint": "\($0)"] })
        }
    }
}
