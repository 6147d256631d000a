// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignNegotiate
package import CountersignProxy
package import CountersignRevocation
import CountersignSitePolicy
package import CountersignVault
package import Logging
import NIOConcurrencyHelpers

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
    /// The shared sessions, which the proxies of the home use and change.
    package let sessions = SessionStore(isPublicSuffix: { name in
        guard let host = try? HostName(canonicalizing: name) else { return true }
        return Home.publicSuffixes.isPublicSuffix(host)
    })
    private let reader: HomeReader
    private let interceptionNeed: NIOLockedValueBox<InterceptionNeed>
    private let snapshot: NIOLockedValueBox<HomeSnapshot>
    private let sharedRenewals = NIOLockedValueBox<SignInRenewals?>(nil)

    /// The interval between attempts to renew the interception CA, in seconds.
    private static let renewalInterval: Int64 = 60

    package var home: Home { reader.home }

    /// The renewals of the runtime that uses this keeper for as long as it runs; nil if there is none. Temporary ones
    /// use the same, because new tokens that cannot be stored are kept in memory.
    var signInRenewals: SignInRenewals? {
        get { sharedRenewals.withLockedValue { $0 } }
        set { sharedRenewals.withLockedValue { $0 = newValue } }
    }

    /// Learns whether origins' certificates are revoked.
    package var revocation: RevocationService { reader.revocation }

    /// Reads the home for the first time, and throws if any part of it is faulty. If the vault requires a passphrase
    /// and `passphrase` throws, the first policy has a locked vault. `again` is called after a wrong passphrase. `now`
    /// returns seconds since 1970.
    package init(
        home: Home, interception need: InterceptionNeed, environment: [String: String], logger: Logger,
        now: @escaping @Sendable () -> Int64, again: PassphraseRetry? = nil, passphrase: () throws -> Secret
    ) throws {
        reader = HomeReader(home: home, environment: environment, logger: logger, now: now)
        interceptionNeed = NIOLockedValueBox(need)
        var (snapshot, vaultError) = try reader.read(need: need, again: again, passphrase: passphrase)
        vaultErrorAtStart = vaultError
        policy = CurrentPolicy(snapshot.makePolicy())
        breaker = BreakerBoard(
            now: now, storage: BreakerFile(home: home, now: now).storage,
            warn: { logger.error("rejected passwords cannot be recorded: \($0)") },
            found: { key, finding in
                guard let sentence = finding.sentence(key) else { return }
                logger.notice("\(sentence)")
            })
        self.snapshot = NIOLockedValueBox(snapshot)
        adoptSessions(of: snapshot)
    }

    private func replace(with new: Policy) {
        policy.replace(with: new)
        KerberosTickets.shared.keepOnly(Set(new.principals.values.map(\.reference)))
    }

    // MARK: Reading again

    /// Reads the home again if one of its files has changed, a trust exception has expired, or the interception CA must
    /// be renewed; with `force`, in any case.
    package func refresh(force: Bool = false) {
        breaker.poll()
        snapshot.withLockedValue { snapshot in
            writeSessions(&snapshot)
            let stamp = HomeStamp(home)
            let hasVaultChanged = snapshot.vaultWatch.takeChange()
            let now = reader.now()
            let hasExpired = snapshot.trustExceptions.contains { !$0.counts(at: now) }
            guard
                force || stamp != snapshot.stamp || hasVaultChanged || hasExpired || isRenewalDue(&snapshot)
            else { return }
            snapshot.stamp = stamp
            reader.reread(&snapshot, need: interceptionNeed.withLockedValue { $0 })
            adoptSessions(of: snapshot)
            // Compared with the policy and not with the snapshot, whose vault shows a change by this process at once.
            guard force || snapshot.policyInputs != snapshot.applied else { return }
            replace(with: snapshot.makePolicy())
            reader.logger.info("read \(home.path) again: \(snapshot.summary)")
        }
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
        interceptionNeed.withLockedValue { $0 = need }
        refresh(force: true)
    }

    // MARK: Locking and switching off

    /// Closes the vault: no challenge is answered and no site intercepted until ``unlock(passphrase:)``. Exchanges in
    /// progress continue.
    package func lock() {
        snapshot.withLockedValue { snapshot in
            writeSessions(&snapshot)
            snapshot.lock()
            adoptSessions(of: snapshot)
            replace(with: snapshot.makePolicy())
            reader.logger.info("the vault was locked")
        }
    }

    /// Opens the vault again. `passphrase` may be nil if a key file opens it. Throws ``VaultError`` and stays locked if
    /// that fails.
    package func unlock(passphrase: Secret?) throws {
        try snapshot.withLockedValue { snapshot in
            snapshot.vault = try reader.openVault(passphrase: passphrase)
            snapshot.lockReason = nil
            snapshot.stamp = HomeStamp(home)
            _ = snapshot.vaultWatch.takeChange()
            reader.reread(&snapshot, need: interceptionNeed.withLockedValue { $0 })
            adoptSessions(of: snapshot)
            replace(with: snapshot.makePolicy())
            reader.logger.info("the vault was unlocked: \(snapshot.summary)")
        }
    }

    // MARK: Shared sessions

    /// Writes the cookies that origins have set since the last time.
    package func writeSessions() {
        snapshot.withLockedValue { writeSessions(&$0) }
    }

    private func writeSessions(_ snapshot: inout HomeSnapshot) {
        guard let vault = snapshot.vault else { return }
        let changes = sessions.changes(at: reader.now())
        guard !changes.isEmpty else { return }
        do {
            try vault.update { contents in
                for (key, list) in changes { try contents.changeSession(key, list) }
            }
            sessions.adopt(vault.contents.sessions, written: changes)
            snapshot.hasUnwrittenSessions = false
        } catch {
            if !snapshot.hasUnwrittenSessions {
                reader.logger.warning("the cookies of shared sessions cannot be stored: \(error)")
            }
            snapshot.hasUnwrittenSessions = true
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
        snapshot.withLockedValue { snapshot in
            let isAnswering = isAnswering()
            guard snapshot.isAnswering != isAnswering else { return }
            snapshot.isAnswering = isAnswering
            replace(with: snapshot.makePolicy())
        }
    }

    /// Warnings about files and lines of the home that have no effect, as last read.
    package var remarks: [Diagnostic] { snapshot.withLockedValue { $0.remarks } }

    package var isLocked: Bool { snapshot.withLockedValue { $0.lockReason != nil } }

    /// The opened vault; nil if it is locked or the home has none.
    package var vault: OpenVault? { snapshot.withLockedValue { $0.vault } }
}
