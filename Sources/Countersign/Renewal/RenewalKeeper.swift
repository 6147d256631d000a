// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Logging
import CountersignProxy
import Synchronization
import CountersignVault

/// Keeps the enrolled identities of a running proxy fresh: looks once a minute which are due, and refreshes one at once when an
/// origin rejects it. It runs on threads of its own kind, never on an event loop.
package final class RenewalKeeper: Sendable {
    private let policyKeeper: PolicyKeeper
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let refreshed: (@Sendable (String, (any Error)?) -> Void)?
    private let state = Mutex(State())
    private let looking = Mutex<Task<Void, Never>?>(nil)

    /// Between two looks.
    package static let period = Duration.seconds(60)
    /// An identity that origins reject is refreshed for that reason once in this many seconds.
    package static let rejectionSeconds: Int64 = 300
    /// How long a request waits for that; the refresh goes on behind it.
    package static let patience = Duration.seconds(60)
    /// Failures that are entered for an identity that went back to what it replaced: the longest delay.
    private static let failuresOfReturn: UInt32 = 10

    private struct State: Sendable {
        /// The locked vault was told of.
        var hasToldOfLock = false
        /// By name: when an origin's rejection last led to a refresh.
        var rejected: [String: Int64] = [:]
        /// By name: that refresh, while it runs.
        var running: [String: Task<Bool, Never>] = [:]
        /// SHA-256 of the leaves that an origin has rejected, and of those that one has taken.
        var rejectedLeaves: Set<[UInt8]> = []
        var acceptedLeaves: Set<[UInt8]> = []
    }

    /// `now` gives seconds since 1970. `refreshed` hears the name of each identity that has a new certificate, or that has
    /// none for the reason that is given.
    package init(
        policyKeeper: PolicyKeeper, now: @escaping @Sendable () -> Int64, logger: Logger,
        refreshed: (@Sendable (String, (any Error)?) -> Void)? = nil
    ) {
        self.refreshed = refreshed
        self.policyKeeper = policyKeeper
        self.now = now
        self.logger = logger
    }

    /// Looks now, and every ``period`` until ``stop()``.
    package func start() {
        looking.withLock { task in
            guard task == nil else { return }
            task = Task.detached { [weak self] in
                while !Task.isCancelled {
                    await self?.look()
                    try? await Task.sleep(for: Self.period)
                }
            }
        }
    }

    package func stop() {
        looking.withLock { task in
            task?.cancel()
            task = nil
        }
        state.withLock { $0.running.values.forEach { $0.cancel() } }
    }

    // MARK: When it is time

    /// Refreshes what is due.
    package func look() async {
        guard let vault = openVault() else { return }
        for name in vault.contents.plannedNames where !Task.isCancelled {
            repairFile(of: name, in: vault)
            let state = RenewalState(named: name, in: vault.contents, home: policyKeeper.home, now: now())
            guard let state, state.isDue, state.nextAttempt <= now() else { continue }
            _ = await refresh(name, in: vault)
        }
    }

    /// The vault as it is in the file; nil while it is shut, which is told of once where anything is enrolled.
    private func openVault() -> OpenVault? {
        guard let vault = policyKeeper.vault else {
            let tells = policyKeeper.isLocked && !state.withLock(\.hasToldOfLock)
            state.withLock { $0.hasToldOfLock = $0.hasToldOfLock || tells }
            if tells { logger.notice("no certificate is refreshed while the vault is locked") }
            return nil
        }
        state.withLock { $0.hasToldOfLock = false }
        do {
            try vault.reload()
        } catch {
            logger.warning("no certificate is refreshed: \(error.detail)")
            return nil
        }
        return vault
    }

    private func repairFile(of name: String, in vault: OpenVault) {
        do {
            guard try renewal(vault).repairFile(of: name) else { return }
            logger.notice(
                "the chain of identity \"\(name)\" was written again: \(policyKeeper.home.identityChain(named: name).name)"
            )
        } catch {
            report("the chain of identity \"\(name)\" cannot be written", error)
        }
    }

    /// Whether there is a new certificate, in force.
    private func refresh(
        _ name: String, in vault: OpenVault, from leaf: [UInt8]? = nil, patience: Duration = .zero
    ) async -> Bool {
        do {
            switch try await renewal(vault).refreshIfUnlocked(name, from: leaf, patience: patience) {
            case .renewed(let leaf):
                logger.notice("identity \"\(name)\" has a new certificate, valid until \(Self.text(leaf.notAfter))")
                policyKeeper.refresh(force: true)
                refreshed?(name, nil)
                return true
            case .pending(let until):
                logger.info(
                    "the new certificate of identity \"\(name)\" is pending, asked for again \(Self.text(until))")
            case nil:
                logger.debug("identity \"\(name)\" is being refreshed by another process")
            }
        } catch {
            if error.isCancellation { return false }
            let next = RenewalState(named: name, in: vault.contents, home: policyKeeper.home, now: now())?.nextAttempt
            let again = next.map { ", tried again \(Self.text($0))" } ?? ""
            report("identity \"\(name)\" has no new certificate\(again)", error)
            refreshed?(name, error)
        }
        return false
    }

    private func renewal(_ vault: OpenVault) -> IdentityRenewal {
        IdentityRenewal(home: policyKeeper.home, vault: vault, now: now)
    }

    private func report(_ consequence: String, _ error: any Error) {
        for diagnostic in Diagnostic.all(in: error) {
            logger.warning("\(consequence): \(diagnostic.message)", metadata: diagnostic.hint.map { ["hint": "\($0)"] })
        }
    }

    private static func text(_ seconds: Int64) -> String { WallClock.rfc3339(seconds) }

    // MARK: What origins say

    /// An origin has rejected `identity`. Whether another one of its name is in force now; at most one refresh in
    /// ``rejectionSeconds`` is made for that, and everybody who asks meanwhile waits for it.
    package func rejected(_ identity: Identity) async -> Bool {
        let (name, leaf) = (identity.name, identity.leaf.sha256Fingerprint)
        if isReplaced(name, leaf) { return true }
        let task = state.withLock { state -> Task<Bool, Never>? in
            if state.rejectedLeaves.count < 1024 { state.rejectedLeaves.insert(leaf) }
            if let running = state.running[name] { return running }
            if let last = state.rejected[name], abs(now() - last) < Self.rejectionSeconds { return nil }
            state.rejected[name] = now()
            let task = Task.detached {
                let isReplaced = await self.replace(name, leaf)
                self.state.withLock { $0.running[name] = nil }
                return isReplaced
            }
            state.running[name] = task
            return task
        }
        guard let task else { return false }
        return await withCheckedContinuation { continuation in
            let answer = FirstAnswer(continuation)
            Task.detached { answer.give(await task.value) }
            Task.detached {
                try? await Task.sleep(for: Self.patience)
                answer.give(false)
            }
        }
    }

    /// An origin has taken `identity`.
    package func accepted(_ identity: Identity) {
        let leaf = identity.leaf.sha256Fingerprint
        let isNews = state.withLock { state in
            if state.acceptedLeaves.count >= 1024 { state.acceptedLeaves = [] }
            return state.acceptedLeaves.insert(leaf).inserted
        }
        guard isNews else { return }
        Task.detached { [self] in
            guard let vault = policyKeeper.vault, vault.contents.enrollments[identity.name]?.previous != nil else {
                return
            }
            do {
                try renewal(vault).accepted(identity.name, leafSHA256: leaf)
            } catch {
                report("what identity \"\(identity.name)\" replaced stays in the vault", error)
            }
        }
    }

    private func isReplaced(_ name: String, _ leaf: [UInt8]) -> Bool {
        guard case .open(_, let identities) = policyKeeper.policy.current.enrollment,
            let present = identities.first(where: { $0.name == name })
        else { return false }
        return present.leaf.sha256Fingerprint != leaf
    }

    /// By the certificate of before, when the rejected one never was accepted; else by a new one.
    private func replace(_ name: String, _ leaf: [UInt8]) async -> Bool {
        guard let vault = openVault(), let record = vault.contents.enrollments[name] else { return false }
        if let previous = record.previous?.leaf, previous.isValid(at: now()),
            !state.withLock({ $0.rejectedLeaves.contains(previous.sha256Fingerprint) })
        {
            do {
                if try renewal(vault).goBack(name, from: leaf, failures: Self.failuresOfReturn) {
                    logger.warning(
                        "origins reject the new certificate of identity \"\(name)\": the one before is used again")
                    policyKeeper.refresh(force: true)
                    return isReplaced(name, leaf)
                }
            } catch {
                report("identity \"\(name)\" cannot go back to its certificate of before", error)
            }
        }
        logger.notice("an origin rejects identity \"\(name)\": it is refreshed")
        return await refresh(name, in: vault, from: leaf, patience: Self.patience)
    }
}

/// Resumes once, with what comes first.
private final class FirstAnswer: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    func give(_ answer: Bool) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: answer)
    }
}
