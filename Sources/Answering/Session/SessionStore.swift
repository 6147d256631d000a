// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import Synchronization

/// The shared sessions of a home, for its proxies: those of the vault, and the changes that are not in it yet. All
/// event loops share it.
package final class SessionStore: Sendable {
    package typealias Sessions = [SharedSession.Key: SharedSession]

    /// Changes that have to be written to the vault.
    package struct Changes: Equatable, Sendable {
        /// At most one for each cookie; removals come first, because they make room.
        package let lists: [SharedSession.Key: [SharedSession.Change]]
        /// The sessions to which the changes were made, as the vault had them.
        package let base: Sessions

        package var isEmpty: Bool { lists.isEmpty }

        /// The changes to the session of that key, in a vault with `sessions`. A cookie that the vault no longer has
        /// was removed elsewhere, as by `session clear`: it is not set again, and neither is a new cookie of a removed
        /// session.
        package func changes(to key: SharedSession.Key, in sessions: Sessions) -> [SharedSession.Change] {
            (lists[key] ?? []).filter { !$0.isSuperseded(from: base[key], to: sessions[key]) }
        }
    }

    fileprivate struct State {
        var isOpen = false
        var stored: Sessions = [:]
        var pending: [SharedSession.Key: PendingChanges] = [:]
        /// The changes that ``changes(at:all:)`` has returned last, which may be in the vault already.
        var offered: [SharedSession.Key: [Cookie.Identity: SharedSession.Change]] = [:]
        /// ``stored`` with ``pending``.
        var current: Sessions = [:]
        /// When changes were returned last.
        var lastOffer = Int64.min / 2
    }

    private let state = Mutex(State())
    /// Whether anyone can register names below a domain.
    package let isPublicSuffix: @Sendable (String) -> Bool

    /// How long a cookie's new value waits to be written after the last write, in seconds. A new cookie and a removal
    /// do not wait.
    fileprivate static let writeInterval: Int64 = 60

    /// `isPublicSuffix`: whether anyone can register names below a domain.
    package init(isPublicSuffix: @escaping @Sendable (String) -> Bool) {
        self.isPublicSuffix = isPublicSuffix
    }

    // MARK: Requests and responses

    /// The session of that key; nil without one, or while the vault is closed.
    package func session(_ key: SharedSession.Key) -> SharedSession? { state.withLock { $0.current[key] } }

    /// Takes the named cookies from the Set-Cookie fields of a response of the session's host. `path`, `cause` and the
    /// cookies in `sent` are the request's; a change that they do not permit is ignored.
    package func received(
        _ fields: [ArraySlice<UInt8>], named names: [String], path: ArraySlice<UInt8>, cause: CookieCause = .sameSite,
        sent: SentCookies = SentCookies(), for key: SharedSession.Key, now: Int64
    ) {
        let reader = SetCookieReader(host: key.host, names: names, now: now, isPublicSuffix: isPublicSuffix)
        let changes = fields.compactMap { reader.change($0, requestPath: path) }
        guard !changes.isEmpty else { return }
        state.withLock { state in
            guard state.isOpen else { return }
            // The session before the response: a server may remove a cookie and set it again in one.
            let session = state.current[key] ?? SharedSession(key: key)
            for change in changes where session.permits(change, cause: cause, sent: sent) {
                state.add(change.change, to: key, at: now)
            }
        }
    }

    // MARK: The vault

    /// Takes over the sessions of the vault. `written` are the changes that they contain already. Other changes stay,
    /// unless another process has removed their session.
    package func adopt(_ sessions: Sessions, written: Changes? = nil) {
        state.withLock { state in
            for (key, changes) in written?.lists ?? [:] {
                for change in changes { state.pending[key]?.drop(change) }
            }
            guard !state.isOpen || state.stored != sessions || written != nil else { return }
            let base = state.base
            for key in state.pending.keys {
                state.pending[key]?.dropSuperseded(from: base[key], to: sessions[key])
                if state.pending[key]?.isEmpty == true { state.pending[key] = nil }
            }
            if written != nil { state.offered = [:] }
            state.isOpen = true
            state.stored = sessions
            state.current = sessions
            for (key, pending) in state.pending {
                for change in pending.list { state.applyCurrent(change, to: key) }
            }
        }
    }

    /// The vault is closed: no request gets a cookie, and none is taken.
    package func close() {
        state.withLock { $0 = State() }
    }

    /// The changes that have to be written at `now`, in seconds since 1970, with the ends of cookies that have expired:
    /// none until one of them is due, and then all. With `all`, those that are not due, too. ``adopt(_:written:)``
    /// must follow once they are written.
    package func changes(at now: Int64, all: Bool = false) -> Changes {
        state.withLock { state in
            for (key, session) in state.current {
                for identity in session.expired(at: now) { state.add(.remove(identity), to: key, at: now) }
            }
            let base = state.base
            // Removals of cookies that were offered once and have never been written.
            for key in state.pending.keys {
                let unknown = state.pending[key]?.removals.filter { !state.isInVault($0, of: key) } ?? []
                for identity in unknown { state.pending[key]?.forget(identity) }
                if state.pending[key]?.isEmpty == true { state.pending[key] = nil }
            }
            guard state.pending.values.contains(where: { $0.isDue(at: now, all: all) }) else {
                return Changes(lists: [:], base: base)
            }
            state.lastOffer = now
            let lists = state.pending.mapValues(\.list)
            state.offered = lists.mapValues { list in
                Dictionary(list.map { ($0.identity, $0) }, uniquingKeysWith: { $1 })
            }
            return Changes(lists: lists, base: base)
        }
    }
}

// MARK: Changes that are not written

/// The changes of one session that are not in the vault: the last one of each cookie.
private struct PendingChanges {
    private struct Entry {
        let change: SharedSession.Change
        /// When it must be written, in seconds since 1970; nil if it is only written with others.
        let due: Int64?
        let number: Int
    }

    private var entries: [Cookie.Identity: Entry] = [:]
    private var lastNumber = 0

    var isEmpty: Bool { entries.isEmpty }

    /// The removals, and then the others in the order of their arrival.
    var list: [SharedSession.Change] {
        let changes = entries.values.sorted { $0.number < $1.number }.map(\.change)
        return changes.filter { !$0.isSet } + changes.filter(\.isSet)
    }

    func isDue(at now: Int64, all: Bool) -> Bool {
        entries.values.contains { entry in all || entry.due.map { $0 <= now } == true }
    }

    /// Puts the change in the place of an earlier one, and keeps that one's time if it is due sooner.
    mutating func put(_ change: SharedSession.Change, due: Int64?) {
        let former = entries[change.identity]?.due
        let earliest = [due, former].compactMap(\.self).min()
        lastNumber += 1
        entries[change.identity] = Entry(change: change, due: earliest, number: lastNumber)
    }

    mutating func forget(_ identity: Cookie.Identity) {
        entries[identity] = nil
    }

    /// Drops the change, unless a newer one for its cookie has arrived.
    mutating func drop(_ change: SharedSession.Change) {
        if entries[change.identity]?.change == change { entries[change.identity] = nil }
    }

    var removals: [Cookie.Identity] { entries.filter { !$0.value.change.isSet }.map(\.key) }

    mutating func dropSuperseded(from base: SharedSession?, to new: SharedSession?) {
        entries = entries.filter { !$0.value.change.isSuperseded(from: base, to: new) }
    }
}

extension SessionStore.State {
    /// ``stored`` without the cookies that were offered as removed: that they are gone is our own doing.
    fileprivate var base: SessionStore.Sessions {
        var base = stored
        for (key, changes) in offered {
            guard var session = base[key] else { continue }
            for case .remove(let identity) in changes.values { session.apply(.remove(identity)) }
            base[key] = session.cookies.isEmpty ? nil : session
        }
        return base
    }

    fileprivate mutating func add(_ change: SharedSession.Change, to key: SharedSession.Key, at now: Int64) {
        let isApplied = applyCurrent(change, to: key)
        let identity = change.identity
        switch change {
        case .remove:
            guard isInVault(identity, of: key) else {
                pending[key]?.forget(identity)
                return
            }
            pending[key, default: PendingChanges()].put(change, due: now)
        case .set(let new):
            guard isApplied else { return }
            pending[key, default: PendingChanges()].put(change, due: due(new, of: key, at: now))
        }
    }

    /// Whether the vault has the cookie, or may have it because it was offered.
    fileprivate func isInVault(_ identity: Cookie.Identity, of key: SharedSession.Key) -> Bool {
        stored[key]?[identity] != nil || offered[key]?[identity]?.isSet == true
    }

    /// When a cookie that was set must be written. A new one is at once. One that only gets another expiry, of less
    /// than a minute or a quarter of the remaining time, need not be.
    private func due(_ new: Cookie, of key: SharedSession.Key, at now: Int64) -> Int64? {
        guard let known = stored[key]?[new.identity], offered[key]?[new.identity] != .remove(new.identity) else {
            return now
        }
        let hasSameValue =
            known.value == new.value && known.isSecure == new.isSecure && known.isHTTPOnly == new.isHTTPOnly
            && known.sameSite == new.sameSite && (known.expires == nil) == (new.expires == nil)
        let step = min(SessionStore.writeInterval, max(0, known.end - now) / 4)
        if hasSameValue, abs(known.end - new.end) < max(step, 1) { return nil }
        return max(now, min(lastOffer, now) + SessionStore.writeInterval)
    }

    /// Returns whether the change is possible.
    @discardableResult
    fileprivate mutating func applyCurrent(_ change: SharedSession.Change, to key: SharedSession.Key) -> Bool {
        var session = current[key] ?? SharedSession(key: key)
        let isApplied = session.apply(change)
        current[key] = session.cookies.isEmpty ? nil : session
        return isApplied
    }
}

extension SharedSession.Change {
    fileprivate var isSet: Bool { if case .set = self { true } else { false } }

    /// Whether the change would restore a cookie that was removed elsewhere between the two sessions.
    fileprivate func isSuperseded(from base: SharedSession?, to new: SharedSession?) -> Bool {
        guard isSet, let base else { return false }
        return new == nil || (base[identity] != nil && new?[identity] == nil)
    }
}

extension SharedSession {
    fileprivate subscript(identity: Cookie.Identity) -> Cookie? { cookies.first { $0.identity == identity } }
}
