// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Synchronization

/// The tickets of this process: those that it has obtained for enrolled principals, and the state of the user's own.
///
/// A principal's ticket is obtained when a request first needs it. In the last part of its life, the next request
/// starts a renewal and uses the old one meanwhile. The breaker permits each attempt, so that a wrong password is sent
/// to the KDC once.
package final class KerberosTickets: Sendable {
    package static let shared = KerberosTickets()

    private struct Entry {
        var ticket: ObtainedTicket?
        /// Counts the tickets.
        var version: UInt64 = 0
        var isRenewing = false
        /// The earliest time of the next renewal, in seconds since 1970.
        var renewsAfter: Int64 = 0
    }

    private struct State {
        var principals: [CredentialReference: Entry] = [:]
        /// The user's ticket when it was last examined; nil before.
        var user: UserTicket.Identity??
        /// Counts the changes of it.
        var userVersion: UInt64 = 0
    }

    /// After a renewal that failed, while the old ticket is valid.
    private static let renewalPauseSeconds: Int64 = 60

    private let workers: KerberosWorkers
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    package init(
        workers: KerberosWorkers = .shared, now: @escaping @Sendable () -> Int64 = { WallClock.now().seconds }
    ) {
        self.workers = workers
        self.now = now
    }

    // MARK: Principals

    /// A valid ticket of `credential`. `done` is called once, on any thread.
    func ticket(
        of credential: PrincipalCredential, _ attempts: KDCAttempts?,
        done: @escaping @Sendable (Result<ObtainedTicket, KerberosError>) -> Void
    ) {
        let reference = credential.reference
        let now = self.now()
        let (ticket, mustRenew) = state.withLock { state -> (ObtainedTicket?, Bool) in
            let entry = state.principals[reference] ?? Entry()
            state.principals[reference] = entry
            guard let ticket = entry.ticket, !ticket.isOver(at: now) else { return (nil, false) }
            let mustRenew = ticket.isAgeing(at: now) && !entry.isRenewing && now >= entry.renewsAfter
            if mustRenew { state.principals[reference]?.isRenewing = true }
            return (ticket, mustRenew)
        }
        guard let ticket else {
            return run(credential, attempts, done: done)
        }
        if mustRenew {
            run(credential, attempts, replacing: ticket) { [self] result in
                state.withLock { state in
                    state.principals[reference]?.isRenewing = false
                    if case .failure = result {
                        state.principals[reference]?.renewsAfter = now + Self.renewalPauseSeconds
                    }
                }
            }
        }
        done(.success(ticket))
    }

    /// Requests for one principal take turns, and those that wait for a failing one fail with it.
    private func run(
        _ credential: PrincipalCredential, _ attempts: KDCAttempts?, replacing old: ObtainedTicket? = nil,
        done: @escaping @Sendable (Result<ObtainedTicket, KerberosError>) -> Void
    ) {
        workers.run(for: "ticket of \(Self.key(credential.reference))") { [self] () throws(KerberosError) in
            try obtain(credential, attempts, replacing: old)
        } done: {
            done($0)
        }
    }

    private func obtain(
        _ credential: PrincipalCredential, _ attempts: KDCAttempts?, replacing old: ObtainedTicket?
    ) throws(KerberosError) -> ObtainedTicket {
        let reference = credential.reference
        let now = self.now()
        // Another request may have obtained it while this one was waiting.
        if let known = state.withLock({ $0.principals[reference]?.ticket }), known !== old, !known.isOver(at: now) {
            return known
        }
        let key = Breaker.Key(space: .kdc(of: credential.realm), credential: reference)
        let used: Breaker.Key
        switch attempts?.request(key) {
        case .permitted(let attempt): used = key.used(by: attempt)
        case .refused(let reason), .unsuitable(let reason): throw Self.blocked(credential, reason.text)
        case .wait: throw Self.blocked(credential, "another attempt takes too long")
        case nil: throw Self.blocked(credential, "nothing counts the attempts")
        }
        do throws(ObtainedTicket.Failure) {
            let ticket = try ObtainedTicket(for: credential, at: now)
            attempts?.ended(used, .accepted)
            // Not if the vault was locked in the meantime.
            state.withLock { state in
                state.principals[reference]?.ticket = ticket
                state.principals[reference]?.version += 1
            }
            return ticket
        } catch {
            attempts?.ended(used, error.result)
            throw error.error
        }
    }

    private static func blocked(_ credential: PrincipalCredential, _ reason: String) -> KerberosError {
        KerberosError(.blocked, "no ticket is requested for \(credential.principal): \(reason)")
    }

    /// Identifies an account in the keys of ``KerberosWorkers``.
    static func key(_ reference: CredentialReference) -> String { "\(reference.name) \(reference.source)" }

    /// Forgets the tickets of all principals but these.
    package func keepOnly(_ references: Set<CredentialReference>) {
        state.withLock { state in
            state.principals = state.principals.filter { references.contains($0.key) }
        }
    }

    // MARK: Versions

    /// The number of the ticket that is used for `reference`: another ticket has another number.
    package func version(of reference: CredentialReference) -> UInt64 {
        state.withLock { reference == .ticket ? $0.userVersion : $0.principals[reference]?.version ?? 0 }
    }

    /// Finds out whether there is another ticket for `reference`, on another thread. Then ``version(of:)`` is another
    /// one. `done` is called on any thread.
    package func look(for reference: CredentialReference, done: @escaping @Sendable () -> Void) {
        guard reference == .ticket else {
            let now = self.now()
            state.withLock { state in
                guard let entry = state.principals[reference], entry.ticket?.isOver(at: now) ?? true else { return }
                // The next one will be obtained for the next request.
                state.principals[reference]?.ticket = nil
                state.principals[reference]?.version += 1
            }
            return done()
        }
        workers.run(for: nil) { [self] () throws(KerberosError) in
            noteUser()
        } done: { _ in
            done()
        }
    }

    /// The user's ticket is about to be used. Which one it is matters if a site rejects it. Blocks while the cache is
    /// read.
    func noteFirstUse() {
        if state.withLock({ $0.user == nil }) { noteUser() }
    }

    private func noteUser() {
        let found = UserTicket.Identity.read()
        state.withLock { state in
            if let known = state.user, known != found { state.userVersion += 1 }
            state.user = .some(found)
        }
    }
}
