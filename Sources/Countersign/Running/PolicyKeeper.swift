// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
package import CountersignCryptography
package import CountersignEvents
package import CountersignHome
import CountersignNegotiate
import CountersignReporting
package import CountersignRevocation
package import CountersignVault
package import Logging
import Synchronization

/// Makes a home into a ``Policy`` and keeps it up to date: a valid change to the home takes effect within a second, and
/// an invalid one leaves the previous state in effect.
///
/// Every method reads files and may block for about a second, so do not call it on an event loop. All methods are
/// thread-safe.
package final class PolicyKeeper: Sendable {
    package let policy: CurrentPolicy
    /// Why the vault could not be opened at the start; nil if it was opened.
    package let vaultErrorAtStart: VaultError?
    /// The breaker, which shares its records with the other processes of the home.
    package let breaker: BreakerBoard
    /// Where the keeper, and the proxies that use it, report what they have done.
    package let events: EventBoard
    /// Asks the person about requests to lines with `approve=`; nil if there is nobody to ask.
    package let approvals: ApprovalBoard?
    /// The shared sessions, which the proxies of the home use and change.
    package let sessions = SessionStore(isPublicSuffix: { Home.isPublicSuffix($0) })
    private let reader: HomeReader
    private let programs: ProgramSecrets
    private let interceptionNeed: Mutex<InterceptionNeed>
    private let snapshot: Mutex<HomeSnapshot>
    private let restarter = Mutex<(@Sendable () throws(CountersignError) -> Void)?>(nil)
    private let sharedRenewals = Mutex<SignInRenewals?>(nil)
    /// How many attempts in a row to write shared sessions have failed. Its lock is held during one, and taken before
    /// that of ``snapshot``.
    private let failedWrites = Mutex(0)

    /// The interval between attempts to renew the interception CA, in seconds.
    private static let renewalInterval: Int64 = 60
    /// How long a write of shared sessions waits for another writer. It is attempted again a second later.
    private static let writePatience = Duration.milliseconds(50)

    package var home: Home { reader.home }

    /// The environment of the process.
    package var environment: [String: String] { reader.environment }

    /// The renewals of the runtime that uses this keeper, as long as it runs; nil without a runtime. Temporary ones use
    /// the same, because new tokens that cannot be stored are kept in memory.
    package var signInRenewals: SignInRenewals? {
        get { sharedRenewals.withLock { $0 } }
        set { sharedRenewals.withLock { $0 = newValue } }
    }

    /// Has the process replaced by a new one, which ``setRestarter(_:)`` decides.
    package func restart() throws(CountersignError) {
        guard let restart = restarter.withLock({ $0 }) else {
            throw CountersignError(.refused, "this program does not replace itself")
        }
        try restart()
    }

    /// How to replace the process, which continues meanwhile. `restart` throws if that is not possible.
    package func setRestarter(_ restart: @escaping @Sendable () throws(CountersignError) -> Void) {
        restarter.withLock { $0 = restart }
    }

    /// An organisation wants programs to start again, so that its policy takes effect.
    func organisationWantsRestart() {
        guard restarter.withLock({ $0 != nil }) else { return }
        do throws(CountersignError) {
            try restart()
        } catch {
            reader.logger.warning(
                "an organisation wants this program to start again, and \(error.detail)",
                metadata: error.hint.map { ["hint": "\($0)"] })
        }
    }

    /// Learns whether origins' certificates are revoked.
    package var revocation: RevocationService { reader.revocation }

    /// Reads the home for the first time, and throws if any part of it is faulty. If the vault requires a passphrase
    /// and `passphrase` throws, the first policy has a locked vault. `again` is called after a wrong passphrase.
    /// `isDryRun`: nothing is answered. `now` returns seconds since 1970.
    package init(
        home: Home, interception need: InterceptionNeed, environment: [String: String], logger: Logger,
        events: EventBoard = EventBoard(), approvals: ApprovalBoard? = nil, isDryRun: Bool = false,
        now: @escaping @Sendable () -> Int64,
        again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws {
        reader = HomeReader(home: home, environment: environment, logger: logger, now: now)
        let programs = ProgramSecrets(logger: logger, now: now)
        self.programs = programs
        interceptionNeed = Mutex(need)
        self.events = events
        self.approvals = approvals
        var (snapshot, vaultError) = try reader.read(need: need, again: again, passphrase: passphrase)
        snapshot.isDryRun = isDryRun
        programs.update(snapshot.vault?.contents.programs ?? [:])
        programs.wait()
        snapshot.written = programs.written
        vaultErrorAtStart = vaultError
        policy = CurrentPolicy(snapshot.makePolicy())
        breaker = BreakerBoard(
            now: now, storage: BreakerFile(home: home, now: now).storage,
            warn: { logger.error("rejected passwords cannot be recorded: \($0)") },
            found: { key, finding in
                if case .rejected = finding { programs.rejected(key.credential) }
                guard let sentence = finding.sentence(key) else { return }
                logger.notice("\(sentence)")
            })
        self.snapshot = Mutex(snapshot)
        adoptSessions(of: snapshot)
    }

    private func replace(with new: Policy) {
        let old = policy.current
        policy.replace(with: new)
        let isClosed = if case .closed = new.enrolled { true } else { false }
        if isClosed || old.sites.rules != new.sites.rules { approvals?.forgetAll() }
        KerberosTickets.shared.keepOnly(Set(new.principals.values.map(\.reference)))
    }

    // MARK: Reading again

    /// Reads the home again if one of its files has changed, a trust exception has expired, or the interception CA must
    /// be renewed; with `force`, in any case.
    package func refresh(force: Bool = false) {
        breaker.poll()
        writeSessions()
        snapshot.withLock { snapshot in
            let stamp = HomeStamp(home)
            let hasVaultChanged = snapshot.vaultWatch.takeChange() && !hasChangedSessionsOnly(&snapshot)
            let now = reader.now()
            let hasExpired = snapshot.trustExceptions.contains { !$0.counts(at: now) }
            programs.runDue()
            guard
                force || stamp != snapshot.stamp || hasVaultChanged || hasExpired || isRenewalDue(&snapshot)
                    || programs.written != snapshot.written
            else { return }
            snapshot.stamp = stamp
            let wasPaused = snapshot.isPaused
            let faults = reader.reread(&snapshot, need: interceptionNeed.withLock { $0 })
            takeWritten(&snapshot)
            for fault in faults { events.tell(.notReloaded(reason: fault)) }
            if snapshot.isPaused != wasPaused { events.tell(snapshot.isPaused ? .paused : .resumed) }
            adoptSessions(of: snapshot)
            // Compared with the policy and not with the snapshot, whose vault shows a change by this process at once.
            guard force || snapshot.policyInputs != snapshot.applied else { return }
            replace(with: snapshot.makePolicy())
            reader.logger.info("read \(home.path) again: \(snapshot.summary)")
            if faults.isEmpty { events.tell(.reloaded(sites: snapshot.sites.rules.count)) }
        }
    }

    /// Reads the vault again, and returns whether only shared sessions are different from when the home was read. If
    /// so, they are in effect. False if the vault cannot be read.
    private func hasChangedSessionsOnly(_ snapshot: inout HomeSnapshot) -> Bool {
        guard snapshot.lockReason == nil, let vault = snapshot.vault, let known = snapshot.readContents,
            (try? vault.reload()) != nil, vault.contents.differsInSessionsOnly(from: known)
        else { return false }
        adoptSessions(of: snapshot)
        return true
    }

    /// Whether the interception CA is due for renewal. Returns true at most once per ``renewalInterval``, so that a
    /// failing renewal is repeated at that rate.
    private func isRenewalDue(_ snapshot: inout HomeSnapshot) -> Bool {
        let now = reader.now()
        guard let authority = snapshot.interceptionAuthority,
            now - snapshot.lastRenewalAttempt >= Self.renewalInterval
        else { return false }
        snapshot.lastRenewalAttempt = now
        return !InterceptionStore.isFit(authority, for: InterceptionStore.hosts(of: snapshot.sites), at: now)
    }

    /// Changes when an interception CA is created, and creates one now if `need` is met. A failure is logged.
    package func require(_ need: InterceptionNeed) {
        interceptionNeed.withLock { $0 = need }
        refresh(force: true)
    }

    /// Runs the programs of new credentials, which may take longer than this, and takes what others have written.
    private func takeWritten(_ snapshot: inout HomeSnapshot) {
        programs.update(snapshot.lockReason == nil ? snapshot.vault?.contents.programs ?? [:] : [:])
        snapshot.written = programs.written
    }

    // MARK: Locking and switching off

    /// Closes the vault: no challenge is answered and no site intercepted until ``unlock(passphrase:)``. Exchanges in
    /// progress continue.
    package func lock() {
        let (vault, changes) = snapshot.withLock { snapshot in
            let vault = snapshot.vault
            let changes = sessions.changes(at: reader.now(), all: true)
            snapshot.lock()
            programs.update([:])
            adoptSessions(of: snapshot)
            replace(with: snapshot.makePolicy())
            reader.logger.info("the vault was locked")
            events.tell(.locked)
            return (vault, changes)
        }
        // The vault is no longer in use; the last cookies are worth one attempt.
        guard let vault else { return }
        failedWrites.withLock { failedWrites in
            failedWrites = 0
            _ = write(changes, to: vault, patience: .zero, &failedWrites)
        }
    }

    /// Opens the vault again. `passphrase` may be nil if a key file opens it, or if the home's keeper has a copy.
    /// Throws ``VaultError`` or ``CountersignError`` and stays locked if that fails.
    package func unlock(passphrase: Secret?) throws {
        // A keyring may ask the person first.
        let passphrase = try passphrase ?? reader.keptPassphrase()
        try snapshot.withLock { snapshot in
            snapshot.vault = try reader.openVault(passphrase: passphrase)
            snapshot.lockReason = nil
            snapshot.stamp = HomeStamp(home)
            _ = snapshot.vaultWatch.takeChange()
            _ = reader.reread(&snapshot, need: interceptionNeed.withLock { $0 })
            takeWritten(&snapshot)
            adoptSessions(of: snapshot)
            replace(with: snapshot.makePolicy())
            reader.logger.info("the vault was unlocked: \(snapshot.summary)")
            events.tell(.unlocked)
        }
    }

    // MARK: Shared sessions

    /// Writes the cookies that origins have set since the last time, if that is due; with `isLast`, in any case, and
    /// waits for other writers of the vault.
    package func writeSessions(isLast: Bool = false) {
        failedWrites.withLock { failedWrites in
            guard let vault else { return }
            let changes = sessions.changes(at: reader.now(), all: isLast)
            guard write(changes, to: vault, patience: isLast ? nil : Self.writePatience, &failedWrites) else { return }
            snapshot.withLock { snapshot in
                guard snapshot.vault === vault else { return }
                sessions.adopt(vault.contents.sessions, written: changes)
            }
        }
    }

    /// Returns false if nothing was written. Makes no backup: it would replace that of a change by a person.
    private func write(
        _ changes: SessionStore.Changes, to vault: OpenVault, patience: Duration?, _ failedWrites: inout Int
    ) -> Bool {
        guard !changes.isEmpty else { return false }
        do {
            try vault.update(keepsBackup: false, patience: patience) { contents in
                for key in changes.lists.keys {
                    try contents.changeSession(key, changes.changes(to: key, in: contents.sessions))
                }
            }
            failedWrites = 0
            return true
        } catch {
            failedWrites += 1
            // Another writer seldom takes long, and the next attempt is a second later.
            let limit = (error as? VaultError)?.code == .locked && patience == Self.writePatience ? 10 : 1
            if failedWrites == limit {
                reader.logger.warning("the cookies of shared sessions cannot be stored: \(error)")
            }
            return false
        }
    }

    private func adoptSessions(of snapshot: HomeSnapshot) {
        if let vault = snapshot.vault, snapshot.lockReason == nil {
            sessions.adopt(vault.contents.sessions)
        } else {
            sessions.close()
        }
    }

    /// Sets whether the list is in effect. While it is not, no site counts as listed; exchanges in progress continue.
    /// `isAnswering` is evaluated under the lock, so that of several concurrent calls the last value wins.
    package func setAnswering(_ isAnswering: () -> Bool) {
        snapshot.withLock { snapshot in
            let isAnswering = isAnswering()
            guard snapshot.isAnswering != isAnswering else { return }
            snapshot.isAnswering = isAnswering
            replace(with: snapshot.makePolicy())
        }
    }

    /// Warnings about files and lines of the home that have no effect, as last read.
    package var remarks: [Diagnostic] { snapshot.withLock { $0.remarks } }

    /// Whether nothing is answered.
    package var isDryRun: Bool { snapshot.withLock { $0.isDryRun } }

    package var isLocked: Bool { snapshot.withLock { $0.lockReason != nil } }

    /// The opened vault; nil if it is locked or the home has none.
    package var vault: OpenVault? { snapshot.withLock { $0.vault } }
}
